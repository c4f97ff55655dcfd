"""The transformers oracle against transformers used in other ways, and what makes it refuse to answer."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from staticfire.harness.oracle import transformers as module
from staticfire.harness.oracle.base import OracleError, Question
from staticfire.harness.oracle.families import FAMILIES, family_of
from staticfire.harness.oracle.isolation import import_transformers
from staticfire.harness.oracle.transformers import TransformersOracle, load_model

pytestmark = [pytest.mark.engine, pytest.mark.slow]


@pytest.fixture(scope="module")
def oracle():
    return TransformersOracle()


@pytest.fixture(scope="module")
def question(jamba):
    return Question(checkpoint=jamba, dtype="float32", quantization=None, max_tokens=8)


def plain(folder, dtype=torch.float32):
    return import_transformers().AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, local_files_only=True).eval()


@pytest.mark.parametrize("name", ["jamba", "llama"])
def test_tokens_are_those_of_generate_and_values_those_of_one_forward_pass(oracle, request, cuts, name):
    folder = request.getfixturevalue(name)
    asked = Question(checkpoint=folder, dtype="float32", quantization=None, max_tokens=8)
    model = plain(folder)
    for prompt in cuts:
        trace = oracle.trace(asked, prompt)
        with torch.inference_mode():
            generated = model.generate(
                torch.tensor([prompt]),
                attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                do_sample=False,
                max_new_tokens=8,
                eos_token_id=None,
                pad_token_id=0,
            )
            logits = model(torch.tensor([prompt + trace.tokens])).logits[0]
        assert trace.tokens == tuple(generated[0, len(prompt) :].tolist())
        every = torch.log_softmax(logits, -1)
        rows = every[len(prompt) - 1 : -1]
        np.testing.assert_allclose(trace.rows, rows.numpy(), atol=5e-5)
        scored = oracle.score(asked, prompt + trace.tokens, len(prompt) + 8, None)
        np.testing.assert_allclose(scored, every.numpy(), atol=5e-5)
        assert trace.rows.shape == (8, 512)


def test_its_noise_is_small_but_there_and_bfloat16_has_thousands_of_times_more(oracle, question, cuts):
    quiet = oracle.trace(question, cuts[1]).noise
    assert 0 < quiet.rms < quiet.max < 5e-5
    assert 0 < quiet.router < 5e-5
    loud = oracle.trace(replace(question, dtype="bfloat16"), cuts[1]).noise
    assert 1000 * quiet.max < loud.max < 2
    assert loud.rms < loud.max


@pytest.mark.parametrize("kept", ["ssm_dtype", "conv_dtype", "kv_dtype"])
def test_a_cache_kept_in_half_precision_is_part_of_the_noise(oracle, question, cuts, kept):
    exact = oracle.trace(question, cuts[1])
    rounded = oracle.trace(replace(question, **{kept: "bfloat16"}), cuts[1])
    assert rounded.noise.max > 100 * exact.noise.max
    np.testing.assert_array_equal(rounded.rows[0], exact.rows[0])


def test_routing_is_recorded_for_every_token_that_was_fed(oracle, question, cuts):
    prompt = cuts[0]
    trace = oracle.trace(question, prompt)
    fed = len(prompt) + len(trace.tokens) - 1
    assert trace.routing.shape == (2, fed, 2)  # two MoE layers, two of four experts
    assert trace.router_logits.shape == (2, fed, 4)
    best = np.sort(np.argsort(-trace.router_logits, -1)[..., :2], -1)
    np.testing.assert_array_equal(np.sort(trace.routing, -1), best)


def test_a_replay_under_its_own_routing_changes_nothing_and_under_another_much(oracle, question, cuts):
    trace = oracle.trace(question, cuts[1])
    same = oracle.replay(question, trace.prompt, trace.tokens, trace.routing)
    np.testing.assert_array_equal(same.rows, trace.rows)
    other = trace.routing.copy()
    other[0, 3] = [e for e in range(4) if e not in trace.routing[0, 3]]
    moved = oracle.replay(question, trace.prompt, trace.tokens, other)
    assert np.abs(moved.rows - trace.rows).max() > 1e-3
    np.testing.assert_array_equal(moved.router_logits[0], trace.router_logits[0])  # the first router sees the same
    assert np.abs(moved.router_logits[1] - trace.router_logits[1]).max() > 1e-3


def quantized(rows):
    """The definition in numpy, row by row, in float32."""
    rows = rows.numpy()
    largest = np.abs(rows).max(-1, keepdims=True)
    scale = np.where(largest > 0, largest / np.float32(127), np.float32(1))
    return torch.from_numpy(np.rint(rows / scale).clip(-127, 127).astype(np.float32) * scale)


def test_experts_int8_replaces_the_expert_weights_and_nothing_else(oracle, question, jamba, cuts):
    trace = oracle.trace(replace(question, quantization="experts_int8"), cuts[1])
    model = plain(jamba)
    changed = 0
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".experts." in name:
                parameter.copy_(quantized(parameter))
                changed += 1
        assert changed == 4  # two layers, two tensors each
        logits = model(torch.tensor([cuts[1] + trace.tokens])).logits[0]
    rows = torch.log_softmax(logits, -1)[len(cuts[1]) - 1 : -1]
    np.testing.assert_allclose(trace.rows, rows.numpy(), atol=5e-5)
    assert np.abs(trace.rows - oracle.replay(question, cuts[1], trace.tokens, trace.routing).rows).max() > 1e-2


def test_experts_int8_keeps_float32_expert_weights_in_a_bfloat16_model(jamba):
    model, family = load_model(jamba, torch.bfloat16, "experts_int8", torch.bfloat16)
    experts = [m for m in model.modules() if type(m).__name__ == family.experts]
    assert len(experts) == 2
    assert {p.dtype for e in experts for p in e.parameters()} == {torch.float32}
    inside = {id(p) for e in experts for p in e.parameters()}
    assert {p.dtype for p in model.parameters() if id(p) not in inside} == {torch.bfloat16}


def test_float64_has_float64_weights_and_answers(oracle, question, cuts):
    trace = oracle.trace(replace(question, dtype="float64"), cuts[0])
    assert trace.rows.dtype == np.float64
    single = oracle.trace(question, cuts[0])
    assert 0 < np.abs(trace.rows - single.rows).max() < 1e-4


def test_a_family_whose_own_two_paths_differ_cannot_judge(question, cuts, monkeypatch):
    monkeypatch.setattr(module, "MAX_SELF_DIFFERENCE", 1e-9)
    with pytest.raises(OracleError, match=r"stepped and full runs differ by .* cannot judge"):
        TransformersOracle().trace(question, cuts[0])


def test_a_checkpoint_with_nan_is_no_oracle(jamba, tmp_path, cuts, question):
    from safetensors.torch import load_file, save_file

    folder = shutil.copytree(jamba, tmp_path / "broken")
    (file,) = folder.glob("*.safetensors")
    tensors = load_file(file)
    tensors["model.final_layernorm.weight"][0] = float("nan")
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(OracleError, match="NaN"):
        TransformersOracle().trace(replace(question, checkpoint=folder), cuts[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "float8"}, "float8.*knows float64"),
        ({"quantization": "experts_int4"}, "experts_int4.*knows experts_int8"),
        ({"max_tokens": 0}, "max_tokens=0"),
    ],
)
def test_what_it_cannot_be_asked(question, cuts, change, message):
    with pytest.raises(OracleError, match=message):
        TransformersOracle().trace(replace(question, **change), cuts[0])


def test_an_empty_prompt_is_refused(oracle, question):
    with pytest.raises(OracleError, match="empty"):
        oracle.trace(question, ())


def test_an_unknown_family_is_refused_with_the_nearest_name(tmp_path):
    with pytest.raises(OracleError, match=r"config.json: model_type 'jambo'.*did you mean 'jamba'"):
        family_of({"model_type": "jambo"}, tmp_path, "5.24.0")


@pytest.mark.parametrize("version", ["4.55.2", "4.9", "3.0.0"])
def test_a_release_known_to_be_wrong_is_refused_by_name(tmp_path, version):
    with pytest.raises(OracleError, match=f"transformers {version} cannot judge 'jamba'.*install 4.56"):
        family_of({"model_type": "jamba"}, tmp_path, version)
    assert family_of({"model_type": "llama"}, tmp_path, version) is FAMILIES["llama"]


@pytest.mark.parametrize("version", ["4.56", "4.56.0", "4.100.1", "5.0.0.dev0"])
def test_a_release_after_the_flaw_is_taken(tmp_path, version):
    assert family_of({"model_type": "jamba"}, tmp_path, version) is FAMILIES["jamba"]


def test_models_are_kept_but_not_without_end(question, cuts, monkeypatch):
    monkeypatch.setattr(module, "MODELS_KEPT", 1)
    loaded = []

    def counted(*args):
        loaded.append(args)
        return load_model(*args)

    monkeypatch.setattr(module, "load_model", counted)
    oracle = TransformersOracle()
    oracle.trace(question, cuts[0])
    oracle.trace(question, cuts[0])
    assert len(loaded) == 1
    oracle.trace(replace(question, quantization="experts_int8"), cuts[0])
    oracle.trace(question, cuts[0])
    assert len(loaded) == 3


def test_the_families_name_what_transformers_has(jamba, llama):
    for folder in (jamba, llama):
        model, family = load_model(folder, torch.float32)
        config = json.loads((folder / "config.json").read_text())
        names = {type(m).__name__ for m in model.modules()}
        moe = config.get("num_experts", 0) > 1
        assert moe == (family.router is not None)
        assert not moe or {family.router, family.experts} <= names


def test_its_version_changes_with_every_file_that_decides_an_answer(monkeypatch):
    versions = {TransformersOracle().version}
    for name in module.CODE:
        monkeypatch.setattr(module, "CODE", tuple(other for other in ("base.py", *module.CODE) if other != name))
        versions.add(TransformersOracle().version)
        monkeypatch.undo()
    assert len(versions) == 1 + len(module.CODE)
    imported = {
        line.split()[1].removeprefix("staticfire.harness.oracle.") + ".py"
        for line in Path(module.__file__).read_text(encoding="utf-8").splitlines()
        if line.startswith("from staticfire.harness.oracle.")
    }
    assert imported - {"isolation.py", "store.py"} <= set(module.CODE)
