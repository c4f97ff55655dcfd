"""Tiny checkpoints: genuine, deterministic, whole or not there, and able to show a fault."""

import json
import multiprocessing
import subprocess
import sys
import textwrap
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest

from staticfire.harness import files
from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog, make, prompts

TINY = ("jamba-tiny", "jamba-tiny-grow", "llama-tiny")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "own"))
    assert files.default_cache_dir() == tmp_path / "own"
    monkeypatch.delenv("STATICFIRE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.default_cache_dir() == tmp_path / "staticfire"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.default_cache_dir() == tmp_path / ".cache" / "staticfire"


def test_a_large_model_is_not_ours_to_make(tmp_path):
    with pytest.raises(InputError, match=r"bamba-9b is only resolved, never run.*Tiny: jamba-tiny, jamba-tiny-grow"):
        make.ensure("bamba-9b", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.engine
def test_the_folder_name_follows_everything_that_decides_the_content(tmp_path, monkeypatch):
    before = make.path_of("jamba-tiny", tmp_path)
    model = catalog.load("jamba-tiny")
    assert model.tiny is not None
    assert make.path_of("jamba-tiny", tmp_path) == before
    seen = {before}
    for changed in (
        replace(model, tiny=replace(model.tiny, gain=2.0)),
        replace(model, tiny=replace(model.tiny, seed=99)),
        replace(model, config={**model.config, "mamba_d_state": 16}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(catalog, "load", lambda _, changed=changed: changed)
            seen.add(make.path_of("jamba-tiny", tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(make, "version", lambda _: "9.9")
        seen.add(make.path_of("jamba-tiny", tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(make, "passages", lambda: {"a": "other text"})
        seen.add(make.path_of("jamba-tiny", tmp_path))
    assert len(seen) == 6


def seed_of(name):
    tiny = catalog.load(name).tiny
    assert tiny is not None
    return tiny.seed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return {name: make.ensure(name, cache) for name in TINY}


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_transformers_loads_it_without_a_missing_or_unexpected_tensor(made, name):
    from transformers import AutoModelForCausalLM

    model, info = AutoModelForCausalLM.from_pretrained(made[name], output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    assert model.dtype.is_floating_point
    assert model.config.model_type == catalog.load(name).config["model_type"]
    assert json.loads((made[name] / make.PROVENANCE).read_text())["seed"] == seed_of(name)
    assert (made[name] / "generation_config.json").is_file()


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_the_tokenizer_fills_the_vocabulary_and_gives_every_text_back(made, name):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(made[name])
    assert len(tokenizer) == catalog.load(name).config["vocab_size"] == 512
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)
    for text in [*(prompt.text for prompt in prompts.load()), "Grüße, 你好\n\t\x00"]:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert max(ids) < 512


@pytest.mark.engine
@pytest.mark.slow
def test_the_prompts_are_of_the_lengths_the_matrix_needs(made):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(made["jamba-tiny"])
    ids = {prompt.name: tokenizer.encode(prompt.text) for prompt in prompts.load()}
    lengths = sorted(map(len, ids.values()))
    assert sum(length <= 5 for length in lengths) >= 2
    assert any(length > 3 * 128 for length in lengths)  # three blocks of the largest aligned size
    assert any(64 < length < 256 for length in lengths)
    assert lengths[-1] <= 512 - 64  # room to generate within the matrix's max_model_len
    shared = next(i for i, (a, b) in enumerate(zip(ids["rules-a"], ids["rules-b"], strict=False)) if a != b)
    assert shared >= 2 * 128


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_making_it_again_gives_the_same_bytes(made, name, tmp_path):
    again = make.ensure(name, tmp_path)
    assert again != made[name]
    assert again.name == made[name].name
    for file in ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (again / file).read_bytes() == (made[name] / file).read_bytes(), file


@pytest.mark.engine
@pytest.mark.slow
def test_making_it_leaves_the_random_state_and_the_progress_bars_alone(tmp_path):
    import torch
    from transformers.utils import logging

    torch.manual_seed(7)
    before = torch.get_rng_state()
    shown = logging.is_progress_bar_enabled()
    make.ensure("llama-tiny", tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert logging.is_progress_bar_enabled() == shown


@pytest.mark.engine
@pytest.mark.slow
def test_time_steps_and_decay_are_drawn_as_mambas_authors_draw_them(made):
    import torch
    from safetensors.torch import load_file

    tensors = load_file(made["jamba-tiny"] / "model.safetensors")
    biases = [tensor for name, tensor in tensors.items() if name.endswith("dt_proj.bias")]
    assert len(biases) == 2
    steps = torch.nn.functional.softplus(torch.cat(biases))
    assert steps.min() >= 1e-3 * (1 - 1e-3)
    assert steps.max() <= 1e-1 * (1 + 1e-3)
    # Log-uniform: half of them below the geometric mean.
    assert 0.4 < (steps < 1e-2).float().mean() < 0.6
    decay = [tensor for name, tensor in tensors.items() if name.endswith("A_log")]
    assert torch.allclose(decay[0][5].exp(), torch.arange(1.0, 9.0))
    out = tensors["model.layers.0.mamba.out_proj.weight"]
    assert out.std() * out.shape[1] ** 0.5 == pytest.approx(3.0, rel=0.05)
    assert not [name for name, tensor in tensors.items() if not tensor.any()]


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", ["jamba-tiny", "jamba-tiny-grow"])
def test_a_lost_recurrent_state_shows_in_the_tokens(made, name):
    """Zeroing every state after prefill must change greedy tokens in at least half the prompts."""
    runs = [_greedy(made[name], zero_states=zero) for zero in (False, True)]
    changed = sum(a != b for (a, _), (b, _) in zip(*runs, strict=True))
    assert changed >= len(runs[0]) / 2


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_greedy_text_is_no_loop_and_its_margins_can_be_told_apart(made, name):
    runs = _greedy(made[name])
    assert len({tuple(tokens) for tokens, _ in runs}) == len(runs)
    distinct = [len(set(tokens)) / len(tokens) for tokens, _ in runs]
    assert min(distinct) > 1 / 3
    assert sorted(distinct)[len(distinct) // 4] > 3 / 4
    margins = [margin for _, some in runs for margin in some]
    assert sum(margin > 1e-3 for margin in margins) >= 0.98 * len(margins)


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_float32_stays_well_within_the_bound_of_the_laws(made, name):
    """One pass in float32 against float64: under 1e-4 in every logprob, or no engine could keep that bound."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(made[name])
    model = AutoModelForCausalLM.from_pretrained(made[name])
    exact = AutoModelForCausalLM.from_pretrained(made[name], dtype=torch.float64, experts_implementation="eager")
    worst = 0.0
    with torch.no_grad():
        for prompt in prompts.load()[::2]:
            ids = torch.tensor([tokenizer.encode(prompt.text)])
            difference = model(ids).logits.double().log_softmax(-1) - exact(ids).logits.log_softmax(-1)
            worst = max(worst, difference.abs().max().item())
    assert 0 < worst < 7e-5


@pytest.mark.engine
@pytest.mark.slow
def test_two_processes_at_once_make_one_checkpoint(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        paths = pool.starmap(make.ensure, [("llama-tiny", tmp_path)] * 2)
    assert paths[0] == paths[1]
    visible = [entry.name for entry in paths[0].parent.iterdir() if not entry.name.startswith(".")]
    assert visible == [paths[0].name]


@pytest.mark.engine
@pytest.mark.slow
def test_what_a_killed_process_left_is_swept_up(tmp_path):
    target = make.path_of("llama-tiny", tmp_path)
    stale = target.parent / f".{target.name}-abc"
    stale.mkdir(parents=True)
    assert make.ensure("llama-tiny", tmp_path) == target
    assert not stale.exists()


def test_without_the_engine_extra_it_says_what_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(make, "version", missing)
    with pytest.raises(InputError, match=r"install staticfire\[engine\]"):
        make.ensure("llama-tiny", tmp_path)


@pytest.mark.engine
@pytest.mark.slow
def test_a_failure_half_way_leaves_nothing_behind(tmp_path, monkeypatch):
    from staticfire.harness.models import tokenizer

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tokenizer, "train", full_disk)
    with pytest.raises(OSError, match="No space left"):
        make.ensure("llama-tiny", tmp_path)
    assert [entry.name for entry in (tmp_path / "checkpoints").iterdir() if not entry.name.endswith(".lock")] == []
    monkeypatch.undo()
    assert (make.ensure("llama-tiny", tmp_path) / "model.safetensors").is_file()


def test_names_and_prompts_import_no_torch():
    code = """
        import sys
        from staticfire.harness import files
        from staticfire.harness.models import catalog, devices, make, prompts
        catalog.find("jamba-tiny"), devices.find("cpu"), prompts.load(), files.default_cache_dir()
        heavy = {"torch", "transformers", "tokenizers", "numpy", "pydantic"} & set(sys.modules)
        sys.exit(f"imported {heavy}" if heavy else 0)
    """
    subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(code)], check=True)


def _greedy(folder, *, zero_states=False, steps=16):
    """(tokens, top-1 margins) of each committed prompt, by transformers, one step at a time."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    runs = []
    with torch.no_grad():
        for prompt in prompts.load():
            output = model(torch.tensor([tokenizer.encode(prompt.text)]), use_cache=True)
            cache = getattr(output, "past_key_values", None) or output.cache
            if zero_states:
                states = [s for layer in cache.layers for s in _tensors(getattr(layer, "recurrent_states", None))]
                assert states
                for state in states:
                    state.zero_()
            tokens, margins = [], []
            for _ in range(steps):
                top = output.logits[0, -1].log_softmax(-1).topk(2)
                tokens.append(int(top.indices[0]))
                margins.append(float(top.values[0] - top.values[1]))
                output = model(torch.tensor([tokens[-1:]]), cache=cache, use_cache=True)
            runs.append((tokens, margins))
    return runs


def _tensors(value):
    if value is None:
        return []
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("damage", ["truncated", "flipped", "missing", "extra"])
def test_a_damaged_checkpoint_is_made_anew(tmp_path, damage):
    folder = make.ensure("llama-tiny", tmp_path)
    weights = folder / "model.safetensors"
    sound = weights.read_bytes()
    match damage:
        case "truncated":
            weights.write_bytes(sound[: len(sound) // 2])
        case "flipped":
            weights.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        case "missing":
            weights.unlink()
        case "extra":
            (folder / "model-00002.safetensors").write_bytes(sound)
    assert make.ensure("llama-tiny", tmp_path) == folder
    assert weights.read_bytes() == sound
    assert not (folder / "model-00002.safetensors").exists()
