"""A damaged checkpoint is refused with one error that names file and tensor, all faults at once."""

import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from staticfire.engine.config import model_info
from staticfire.engine.errors import CheckpointError
from staticfire.engine.loader.index import read_hf_config
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.loader.weights import CheckpointWeights
from staticfire.engine.models.registry import family

pytestmark = pytest.mark.engine

FILE = "model.safetensors"
NORM = "model.layers.0.input_layernorm.weight"
EXPERT = "model.layers.3.feed_forward.experts.2.up_proj.weight"


def specs_of(folder: Path) -> list[TensorSpec]:
    info = model_info(read_hf_config(folder), "tiny")
    return family(info.architecture).tensor_specs(info)


def load(folder: Path) -> CheckpointWeights:
    return CheckpointWeights(folder, specs_of(folder), torch.float32)


@pytest.fixture
def copy(jamba: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(jamba, tmp_path / "copy"))


@pytest.fixture
def shards(make_checkpoint: Callable[..., Path], tmp_path: Path) -> Path:
    folder = make_checkpoint("jamba", save={"max_shard_size": "200KB"})
    assert len(list(folder.glob("*.safetensors"))) > 2
    return Path(shutil.copytree(folder, tmp_path / "shards"))


def edit(folder: Path, change: Callable[[dict[str, torch.Tensor]], object], file: str = FILE) -> None:
    tensors = load_file(folder / file)
    change(tensors)
    save_file(tensors, folder / file)


def edit_header(folder: Path, change: Callable[[dict[str, dict[str, object]]], object]) -> None:
    raw = (folder / FILE).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    (folder / FILE).write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + length :])


def test_a_whole_checkpoint_loads_value_for_value(jamba: Path):
    saved = load_file(jamba / FILE)
    weights = load(jamba)
    assert {spec.name for spec in specs_of(jamba)} == saved.keys()
    for name, tensor in saved.items():
        assert torch.equal(weights.take(name), tensor), name
    weights.finish()


def test_shards_load_like_one_file(shards: Path, jamba: Path):
    saved = load_file(jamba / FILE)
    weights = load(shards)
    for name, tensor in saved.items():
        assert torch.equal(weights.take(name), tensor), name
    weights.finish()


def test_a_taken_tensor_does_not_change_with_the_file(copy: Path):
    taken = load(copy).take(NORM)
    before = taken.clone()
    edit(copy, lambda tensors: tensors[NORM].zero_())
    assert torch.equal(taken, before)
    assert before.abs().sum() > 0


def test_what_was_left_behind_or_taken_twice_is_our_bug(jamba: Path):
    weights = load(jamba)
    weights.take(NORM)
    with pytest.raises(AssertionError, match="never took"):
        weights.finish()
    with pytest.raises(AssertionError, match="twice"):
        weights.take(NORM)


BROKEN: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "missing tensor": (lambda f: edit(f, lambda t: t.pop(NORM)), [NORM, "missing", "[64]"]),
    "renamed tensor": (
        lambda f: edit(f, lambda t: t.update({NORM.replace("input_", "inputs_"): t.pop(NORM)})),
        [f"'{NORM}'", "the checkpoint has 'model.layers.0.inputs_layernorm.weight'", "unexpected"],
    ),
    "unexpected tensor": (
        lambda f: edit(f, lambda t: t.update({"model.layers.9.x": torch.ones(2)})),
        [FILE, "'model.layers.9.x'", "unexpected"],
    ),
    "wrong shape": (
        lambda f: edit(f, lambda t: t.update({EXPERT: torch.ones(64, 128)})),
        [FILE, EXPERT, "[64, 128]", "[128, 64]"],
    ),
    "integer weights": (
        lambda f: edit(f, lambda t: t.update({EXPERT: torch.ones(128, 64, dtype=torch.int8)})),
        [FILE, EXPERT, "I8", "BF16"],
    ),
    "truncated data": (
        lambda f: (f / FILE).write_bytes((f / FILE).read_bytes()[:-1000]),
        [FILE, "truncated", "needs data bytes"],
    ),
    "truncated header": (
        lambda f: (f / FILE).write_bytes((f / FILE).read_bytes()[:100]),
        [FILE, "truncated", "header says"],
    ),
    "a few bytes": (lambda f: (f / FILE).write_bytes(b"abc"), [FILE, "truncated", "3 bytes"]),
    "not safetensors": (
        lambda f: (f / FILE).write_bytes(struct.pack("<Q", 4) + b"oops" + bytes(64)),
        [FILE, "not JSON"],
    ),
    "header is a list": (
        lambda f: (f / FILE).write_bytes(struct.pack("<Q", 2) + b"[]"),
        [FILE, "not a JSON object"],
    ),
    "trailing bytes": (
        lambda f: (f / FILE).write_bytes((f / FILE).read_bytes() + bytes(7)),
        [FILE, "7 bytes after the last tensor"],
    ),
    "malformed entry": (
        lambda f: edit_header(f, lambda h: h[NORM].pop("shape")),
        [FILE, NORM, "malformed"],
    ),
    "unknown dtype": (
        lambda f: edit_header(f, lambda h: h[NORM].update(dtype="F33")),
        [FILE, NORM, "'F33'"],
    ),
    "shape and bytes disagree": (
        lambda f: edit_header(f, lambda h: h[NORM].update(shape=[65])),
        [FILE, NORM, "[65]", "needs 260"],
    ),
    "no weights": (lambda f: (f / FILE).unlink(), [FILE, "no such file"]),
    "only a pickle": (
        lambda f: (f / FILE).rename(f / "pytorch_model.bin"),
        ["pytorch_model.bin", "unpickling"],
    ),
    "the same tensor twice": (
        lambda f: save_file({NORM: torch.ones(64)}, f / "other.safetensors"),
        [NORM, "is also in"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken(copy: Path, name: str):
    damage, wanted = BROKEN[name]
    damage(copy)
    with pytest.raises(CheckpointError) as caught:
        load(copy)
    message = str(caught.value)
    assert str(copy) in message
    for text in wanted:
        assert text in message


BROKEN_SHARDS: dict[str, tuple[Callable[[Path, str], object], list[str]]] = {
    "missing shard": (lambda f, s: (f / s).unlink(), ["{shard}: missing shard", "1 fault"]),
    "damaged index": (lambda f, s: (f / f"{FILE}.index.json").write_text("{"), [f"{FILE}.index.json", "weight_map"]),
    "index without a map": (
        lambda f, s: (f / f"{FILE}.index.json").write_text("[]"),
        [f"{FILE}.index.json", "weight_map"],
    ),
    "tensor not where the index says": (
        lambda f, s: edit(f, lambda t: t.pop(min(t)), s),
        ["{shard}: tensor", "is not in it", "1 fault"],
    ),
    "tensor the index does not know": (
        lambda f, s: edit(f, lambda t: t.update(x=torch.ones(1)), s),
        ["{shard}: tensor 'x' is not in", "1 fault"],
    ),
    "truncated shard": (
        lambda f, s: (f / s).write_bytes((f / s).read_bytes()[:20]),
        ["{shard}: truncated", "1 fault"],
    ),
}


@pytest.mark.parametrize("name", BROKEN_SHARDS)
def test_broken_shards(shards: Path, name: str):
    shard = sorted(path.name for path in shards.glob("*.safetensors"))[1]
    damage, wanted = BROKEN_SHARDS[name]
    damage(shards, shard)
    with pytest.raises(CheckpointError) as caught:
        load(shards)
    for text in wanted:
        assert text.format(shard=shard) in str(caught.value)


def test_all_faults_at_once(copy: Path):
    def damage(tensors: dict[str, torch.Tensor]) -> None:
        del tensors[NORM]
        tensors[EXPERT] = torch.ones(3)
        tensors["lm_head.weight"] = tensors["lm_head.weight"].int()
        tensors["surprise"] = torch.ones(1)

    edit(copy, damage)
    with pytest.raises(CheckpointError) as caught:
        load(copy)
    for name in (NORM, EXPERT, "lm_head.weight", "surprise", "4 fault(s)"):
        assert name in str(caught.value)


def test_hundreds_of_faults_stay_readable(copy: Path):
    def replace_all(tensors: dict[str, torch.Tensor]) -> None:
        tensors.clear()
        tensors["x"] = torch.ones(1)

    edit(copy, replace_all)
    with pytest.raises(CheckpointError) as caught:
        load(copy)
    lines = str(caught.value).splitlines()
    assert len(lines) < 30
    assert lines[-1].strip() == f"and {len(specs_of(copy)) + 1 - 20} more"


def test_a_tied_head_may_be_absent_or_equal_but_not_different(make_checkpoint: Callable[..., Path], tmp_path: Path):
    folder = Path(shutil.copytree(make_checkpoint("llama", tie_word_embeddings=True), tmp_path / "tied"))
    assert "lm_head.weight" not in load_file(folder / FILE)
    load(folder)
    edit(folder, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}))
    load(folder)
    edit(folder, lambda t: t["lm_head.weight"].add_(1))
    with pytest.raises(CheckpointError, match=r"'lm_head.weight' differs from 'model.embed_tokens.weight'"):
        load(folder)


def test_rotary_frequencies_of_old_checkpoints_are_passed_over(llama: Path, tmp_path: Path):
    folder = Path(shutil.copytree(llama, tmp_path / "old"))
    edit(folder, lambda t: t.update({"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}))
    load(folder)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [(None, "no such file"), ("{", "not JSON"), ("[1]", "must be a JSON object, is a list")],
)
def test_broken_config(tmp_path: Path, content: str | None, wanted: str):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match=wanted) as caught:
        read_hf_config(tmp_path)
    assert "config.json" in str(caught.value)


def test_no_folder(tmp_path: Path):
    with pytest.raises(CheckpointError, match="no such folder"):
        read_hf_config(tmp_path / "nowhere")
