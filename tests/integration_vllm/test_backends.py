"""Every attention and state backend that a release registers, on several devices: for which the answers are known.

The expectation of each answer comes from the backend's own class methods, asked one by one in a process of their own
(`tests/support/backend_oracle.py`); the probe's answer goes through the engine's front end and its selection.
"""

import json
import subprocess
import sys
from collections import Counter

import pytest

import backend_oracle
from staticfire.harness.models import devices
from staticfire.harness.probe.base import Accepted, Crashed, Question, Rejected, Undecided
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.vllm.facts import facts
from staticfire.harness.probe.vllm.process import AGENT

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

BLOCKS = (1, 8, 16, 24, 32, 64, 100, 128, 256)
HEADS = (64, 80, 128, 256)
DTYPES = ("bfloat16", "float16", "float32")
LATENT = 576  # 512 of the latent and 64 of the rotary part
UNREGISTERED = {"CUSTOM", "TORCH_SDPA"}
"""Names without a class, which the engine refuses wherever it runs."""

DENSE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 1024, "intermediate_size": 2048,
    "num_attention_heads": 8, "num_key_value_heads": 2, "num_hidden_layers": 2, "vocab_size": 1024,
    "max_position_embeddings": 2048, "torch_dtype": "bfloat16",
}  # fmt: skip
MLA = {
    "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2", "hidden_size": 1024,
    "intermediate_size": 2048, "num_attention_heads": 16, "num_key_value_heads": 16, "num_hidden_layers": 2,
    "vocab_size": 1024, "max_position_embeddings": 2048, "torch_dtype": "bfloat16", "kv_lora_rank": 512,
    "q_lora_rank": None, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "first_k_dense_replace": 2,
}  # fmt: skip
COMPLETE = {
    # Backends of each device whose every answer is known; the others and their reasons are printed.
    "h100-80gb": {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT", "FLASHMLA", "TRITON_MLA"},
    "b200": {"FLASH_ATTN", "FLASHINFER", "TRITON_ATTN", "FLEX_ATTENTION", "TURBOQUANT", "CUTLASS_MLA", "TRITON_MLA"},
    "mi300x": {"TRITON_ATTN", "TURBOQUANT", "TRITON_MLA"},
}


def ask_classes(python, device):
    sizes = json.dumps([BLOCKS, [*HEADS, LATENT], DTYPES])
    told = json.dumps(facts(devices.find(device)))
    command = [str(python), backend_oracle.__file__, str(AGENT), told, sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def rows(said):
    """What is asked of a backend: block size, head size and dtype, one or two of them off their defaults."""
    if said.get("mla"):
        return [(block, LATENT, "bfloat16") for block in (None, *BLOCKS)] + [(None, LATENT, one) for one in DTYPES]
    sized = [(block, head, "bfloat16") for block in (None, *BLOCKS) for head in HEADS]
    return sized + [(None, 128, dtype) for dtype in DTYPES]


def takes(said, block, head, dtype):
    return (
        not said["sparse"]
        and said["capability"]
        and said["cache"]
        and (block is None or block in said["blocks"][str(head)])
        and head in said["heads"]
        and dtype in said["dtypes"]
    )


@pytest.mark.parametrize("device", sorted(COMPLETE))
@pytest.mark.parametrize("version", ["0.27.1", "0.28.0", "0.33.0"])
def test_every_backend(open_probe, interpreters, version, device, tmp_path, capsys):
    source = ModelSource(folder=tmp_path)
    folders = {head: str(source.put({**DENSE, "head_dim": head}, "architecture").path) for head in HEADS}
    folders[LATENT] = str(source.put(MLA, "architecture").path)
    classes = ask_classes(interpreters[version], device)
    table = [(name, said, row) for name, said in classes["attention"].items() for row in rows(said)]
    questions = [
        Question(
            folders[head],
            {"attention_backend": name, "dtype": dtype, "kv_cache_memory_bytes": 1 << 30}
            | ({} if block is None else {"block_size": block}),
            "LLM",
        )
        for name, _, (block, head, dtype) in table
    ]
    outcomes = open_probe(version, device).answer(questions)
    wrong = []
    states: dict[str, Counter[str]] = {}
    reasons: dict[str, str] = {}
    for (name, said, row), outcome in zip(table, outcomes, strict=True):
        states.setdefault(name, Counter())[type(outcome).__name__] += 1
        if isinstance(outcome, Undecided):
            reasons.setdefault(name, outcome.worker.because)
        elif isinstance(outcome, Crashed):
            reasons.setdefault(name, outcome.detail)
        elif name in UNREGISTERED:
            assert isinstance(outcome, Rejected)
        elif "failed" in said:
            wrong.append((name, row, "its class cannot be loaded", outcome))
        elif takes(said, *row) is not isinstance(outcome, Accepted) and not _combination(outcome):
            wrong.append((name, row, takes(said, *row), outcome))
    complete = {name for name, counts in states.items() if not counts["Undecided"] and not counts["Crashed"]}
    lines = [f"vLLM {version} on {device}: {len(complete)} of {len(states)} backends are known in every answer"]
    lines += [f"  {name:30} {dict(counts)} {reasons.get(name, '')[:140]}" for name, counts in states.items()]
    lines += [f"  state {name:24} {why or 'loads'}" for name, why in classes["state"].items()]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
    assert wrong == []
    assert complete >= COMPLETE[device] & set(states)
    assert {name for name, why in classes["state"].items() if why} <= {"CUSTOM"}


def _combination(outcome):
    """Whether a refusal comes from what a class says of several values together, which no single method tells."""
    return (
        isinstance(outcome, Rejected)
        and "is not valid for this configuration" in outcome.message
        and not any(
            f"{what} not supported" in outcome.message
            for what in ("block_size", "head_size", "dtype", "compute capability")
        )
    )
