"""Every hybrid architecture of each release can be asked about, and every answer is one of the three kinds."""

import sys

import pytest

from staticfire.harness.probe.base import Accepted, Crashed, Outcome, Question, Rejected, Undecided
from staticfire.harness.probe.models import ModelSource

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

# Hybrid families of these releases' registries with a configuration class in transformers or in vLLM itself.
KNOWN = {
    "FalconH1ForCausalLM",
    "GraniteMoeHybridForCausalLM",
    "JambaForCausalLM",
    "Lfm2MoeForCausalLM",
    "NemotronHForCausalLM",
    "OlmoHybridForCausalLM",
    "Qwen3NextForCausalLM",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    "Zamba2ForCausalLM",
}


def line(architecture: str, said: Outcome) -> str:
    match said:
        case Accepted(_, runtime):
            detail = f"block {runtime['cache.block_size']}, mode {runtime.get('cache.mamba_cache_mode')}"
        case Undecided():
            detail = f"worker not known: {said.worker.because}"
        case Rejected(_, message):
            detail = message
        case _:
            detail = said.detail
    return f"{architecture:45} {type(said).__name__:9} {detail[:110]}"


@pytest.mark.parametrize("version", ["0.27.1", "0.28.0", "0.33.0"])
def test_every_hybrid_architecture_is_asked(open_probe, version, tmp_path, capsys):
    probe = open_probe(version)
    registry = probe.architectures(inspect=True)
    failed = {name: facts["failed"] for name, facts in registry.items() if "failed" in facts}
    hybrid = sorted(name for name, facts in registry.items() if facts.get("hybrid"))
    configs = probe.default_configs(hybrid)
    source = ModelSource(folder=tmp_path)
    said: dict[str, Outcome] = {}
    for name in hybrid:
        config = configs[name]
        if isinstance(config, str):
            said[name] = Crashed(config, lasting=True)
        else:
            said[name] = probe.ask(Question(str(source.put(config, "architecture").path)))
    table = [f"vLLM {version}: {len(registry)} architectures, {len(failed)} not inspected, {len(hybrid)} hybrid"]
    table += [f"  not inspected: {name}: {why[:120]}" for name, why in failed.items()]
    table += [f"  {line(name, outcome)}" for name, outcome in said.items()]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(table) + "\n")
    assert set(hybrid) >= KNOWN
    accepted = {name for name, outcome in said.items() if isinstance(outcome, Accepted)}
    assert accepted >= KNOWN
    settled = {
        name
        for name, outcome in said.items()
        if isinstance(outcome, Accepted) and "cache.block_size" in outcome.runtime
    }
    assert settled >= KNOWN
    for outcome in said.values():
        if isinstance(outcome, Crashed):
            assert outcome.detail
        if isinstance(outcome, Rejected):
            assert outcome.origin.startswith("vllm/")


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_a_refusal_of_a_rule_does_not_depend_on_the_sizes_of_the_stand_in(open_probe, version, tmp_path):
    probe = open_probe(version)
    source = ModelSource(folder=tmp_path)
    messages = set()
    for sizes in (1, 2):
        config = probe.default_configs(["JambaForCausalLM"], sizes=sizes)["JambaForCausalLM"]
        folder = source.put(config, "architecture", certain=False).path
        outcome = probe.ask(Question(str(folder), {"enable_chunked_prefill": False}))
        assert isinstance(outcome, Rejected)
        messages.add(outcome.message)
    assert len(messages) == 1


def test_the_second_sizes_change_what_depends_on_sizes(open_probe, tmp_path):
    probe = open_probe("0.28.0")
    source = ModelSource(folder=tmp_path)
    for name in sorted(KNOWN - {"Lfm2MoeForCausalLM"}):  # its states are smaller than one block whatever its sizes
        blocks = set()
        for sizes in (1, 2):
            config = probe.default_configs([name], sizes=sizes)[name]
            assert not isinstance(config, str)
            outcome = probe.ask(Question(str(source.put(config, "architecture").path)))
            assert isinstance(outcome, Accepted)
            blocks.add(outcome.runtime["cache.block_size"])
        assert len(blocks) == 2, name
