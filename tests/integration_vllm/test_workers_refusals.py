"""The worker's part on real releases: what every attention backend speaks against is refused, dense and hybrid alike.

Expected by hand: on NVIDIA devices no backend for plain attention takes a block size that is no multiple of 16.
"""

import json

import pytest

from staticfire.harness.cli import main
from staticfire.harness.probe.base import Accepted, Rejected, Settled

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

MODELS = [
    "llama-3.1-8b", "jamba-v0.1", "jamba-1.5-mini", "nemotron-h-8b", "granite-4.0-h-tiny", "falcon-h1-0.5b",
    "qwen3-next-80b-a3b", "qwen3.6-35b-a3b", "qwen3.5-dense",
]  # fmt: skip
VERSIONS = ["0.28.0", "0.33.0"]
ODD, EVEN = (1, 8, 24, 100), (16, 32, 64, 128)


@pytest.mark.parametrize("version", [*VERSIONS, "0.27.1"])
@pytest.mark.parametrize("device", ["h100-80gb", "b200"])
def test_block_sizes_that_no_backend_takes(open_probe, question, version, device):
    typed = [(model, size) for model in MODELS for size in (None, *ODD, *EVEN)]
    questions = [question(model, "LLM", **({} if size is None else {"block_size": size})) for model, size in typed]
    outcomes = open_probe(version, device).answer(questions)
    assert len(outcomes) == 81
    for (model, size), outcome in zip(typed, outcomes, strict=True):
        if size in ODD:
            assert isinstance(outcome, Rejected), (model, size, outcome)
            assert (outcome.phase, outcome.doubt) == ("worker", "")
            assert "No valid attention backend found" in outcome.message
            assert outcome.message.count("block_size not supported") >= 4
        else:
            assert isinstance(outcome, Accepted), (model, size, outcome)
            assert isinstance(outcome.capacity, Settled)


@pytest.mark.parametrize("version", VERSIONS)
def test_check_prints_a_finding(interpreters, version, tmp_path, monkeypatch, capsys, repo_root):
    (tmp_path / "test_a.py").write_text(
        "from vllm import LLM\n\n\ndef test_it():\n    LLM('meta-llama/Llama-3.1-8B', block_size=24)\n"
    )
    config = json.loads((repo_root / "matrices" / "models" / "llama-3.1-8b.json").read_text())
    configs = tmp_path / "configs" / "meta-llama" / "Llama-3.1-8B"
    configs.mkdir(parents=True)
    (configs / "config.json").write_text(json.dumps(config["config"]))
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    words = ["--engine-python", str(interpreters[version]), "--model-configs", str(tmp_path / "configs")]
    code = main(["check", str(tmp_path / "test_a.py"), "--engine", "vllm", *words, "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    (finding,) = report["findings"]
    assert code == 1
    assert (finding["kind"], finding["certainty"], finding["phase"]) == ("refused", "certain", "worker")
    assert "No valid attention backend found" in finding["message"]
    (change,) = finding["repair"]
    assert change == {"drop": "block_size"} or (change["set"] == "block_size" and change["value"] % 16 == 0)
    assert report["coverage"]["not_known"] == {}


@pytest.mark.parametrize(
    ("version", "blocks", "accepted"),
    [("0.28.0", 31, False), ("0.28.0", 32, True), ("0.33.0", 32, False), ("0.33.0", 33, True)],
)
def test_one_block_of_the_cache_is_the_null_block(open_probe, question, version, blocks, accepted):
    # 512 tokens take 32 blocks of 16; one more is never used, which the check of 0.28.0 does not reckon with.
    typed = {"num_gpu_blocks_override": blocks, "block_size": 16, "max_model_len": 512}
    outcome = open_probe(version).ask(question("llama-3.1-8b", "LLM", **typed))
    assert isinstance(outcome, Accepted) is accepted
    assert accepted or outcome.phase == "capacity"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_dense_model_gets_the_blocks_that_its_memory_holds(open_probe, question, version):
    # 8 heads of 128 in two bytes, keys and values, 32 layers: 131,072 bytes a token; 92 % of 80 GiB.
    outcome = open_probe(version).ask(question("llama-3.1-8b", "LLM", block_size=32, gpu_memory_utilization=0.5))
    assert isinstance(outcome, Accepted)
    assert outcome.capacity == Settled({"blocks_at_most": (40 << 30) // (131_072 * 32)})
    small = open_probe(version).ask(question("llama-3.1-8b", "LLM", kv_cache_memory_bytes=100_000_000))
    assert isinstance(small, Rejected)
    assert (small.phase, small.doubt) == ("capacity", "")


@pytest.mark.parametrize("version", VERSIONS)
def test_layers_that_the_planner_cannot_bring_together_are_a_refusal_that_is_possible(open_probe, question, version):
    connector = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
    typed = {"max_model_len": 4096, "kv_transfer_config": connector}
    outcome = open_probe(version).ask(question("qwen3.5-dense", "LLM", **typed))
    assert isinstance(outcome, Rejected)
    assert (outcome.phase, bool(outcome.doubt)) == ("worker", True)
    assert outcome.message == "Failed to promote local KV cache specs to one unified type."


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_does_not_depend_on_what_was_asked_before(open_probe, question, version):
    # To refuse the second question, packages are presented that the first one must not find in the third.
    probe = open_probe(version, "b200")
    plain, odd = question("qwen3.6-35b-a3b", "LLM"), question("qwen3.6-35b-a3b", "LLM", block_size=24)
    first, _, third = probe.ask(plain), probe.ask(odd), probe.ask(plain)
    assert first == third
