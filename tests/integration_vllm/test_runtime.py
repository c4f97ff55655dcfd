"""Block sizes that the worker will use, by the engine's own arithmetic; expected values worked out by hand.

With `a` bytes of attention cache for a token of a layer and `M` bytes of state of a layer, a block has the smallest
multiple of the kernel's granule `k` (16, or what was typed) of at least M / a tokens. From 0.33.0 on, a gated-delta
model whose kernel exports states every 64 tokens (FlashInfer on Hopper) has blocks of multiples of 64.
"""

from math import ceil
from typing import Any

import pytest

from staticfire.harness.probe.base import Accepted, NotKnown, Rejected, Settled

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

# model, arguments, granule, a, M
ROWS: list[tuple[str, dict[str, Any], int, int, int]] = [
    ("jamba-1.5-mini", {}, 16, 4096, 311296),
    ("jamba-1.5-mini", {"mamba_ssm_cache_dtype": "float32"}, 16, 4096, 573440),
    ("jamba-1.5-mini", {"kv_cache_dtype": "fp8"}, 16, 2048, 311296),
    ("nemotron-h-8b", {}, 16, 4096, 4255744),
    ("nemotron-h-8b", {"mamba_ssm_cache_dtype": "bfloat16"}, 16, 4096, 61440 + 2097152),
    ("granite-4.0-h-tiny", {}, 16, 2048, 806400),
    ("falcon-h1-0.5b", {}, 16, 512, 403968),
    ("qwen3-next-80b-a3b", {}, 16, 2048, 1097728),
    ("qwen3-next-80b-a3b", {"tensor_parallel_size": 2}, 16, 1024, 548864),
    ("qwen3-next-80b-a3b", {"tensor_parallel_size": 4}, 16, 1024, 274432),
    ("qwen3-next-80b-a3b", {"tensor_parallel_size": 8}, 16, 1024, 137216),
    ("qwen3.6-35b-a3b", {}, 16, 2048, 2146304),
    ("qwen3.6-35b-a3b", {"block_size": 16}, 16, 2048, 2146304),
    ("qwen3.6-35b-a3b", {"tensor_parallel_size": 4}, 16, 1024, 12288 + 524288),
    ("qwen3.6-35b-a3b", {"kv_cache_dtype": "fp8"}, 16, 1024, 2146304),
    ("qwen3.6-35b-a3b", {"block_size": 256}, 256, 2048, 2146304),
    ("qwen3.5-dense", {}, 16, 4096, 3207168),
]
# The same rows as sizes of blocks, so that the formula above cannot be wrong in the same way as the engine.
EXPECTED = [80, 144, 160, 1040, 528, 400, 800, 544, 544, 272, 144, 1056, 1056, 528, 2096, 1280, 784]
NAMES = [
    f"{model}-{'-'.join(f'{key}={value}' for key, value in typed.items()) or 'defaults'}" for model, typed, *_ in ROWS
]


@pytest.mark.parametrize(("row", "block"), list(zip(ROWS, EXPECTED, strict=True)), ids=NAMES)
def test_the_rows_agree_with_the_formula(row, block):
    _, _, granule, attention, state = row
    assert block == granule * ceil(state / (granule * attention))


@pytest.mark.parametrize(("version", "device"), [("0.28.0", "h100-80gb"), ("0.33.0", "a100-80gb")])
@pytest.mark.parametrize(("row", "block"), list(zip(ROWS, EXPECTED, strict=True)), ids=NAMES)
def test_the_worker_uses_these_blocks(open_probe, question, version, device, row, block):
    model, typed, _, attention, state = row
    outcome = open_probe(version, device).ask(question(model, **typed))
    assert isinstance(outcome, Accepted)
    assert outcome.runtime["cache.block_size"] == block
    assert outcome.runtime["cache.mamba_block_size"] == block
    padded = None if block * attention == state else block * attention
    assert outcome.runtime["cache.mamba_page_size_padded"] == padded


@pytest.mark.parametrize(
    ("model", "block"), [("qwen3.6-35b-a3b", 1088), ("qwen3-next-80b-a3b", 576), ("jamba-1.5-mini", 80)]
)
def test_from_0_33_on_gated_delta_states_bind_blocks_to_multiples_of_64_on_hopper(open_probe, question, model, block):
    outcome = open_probe("0.33.0", "h100-80gb").ask(question(model))
    assert isinstance(outcome, Accepted)
    assert outcome.runtime["cache.block_size"] == block


@pytest.mark.parametrize("typed", [{}, {"block_size": 32}])
def test_a_dense_model_keeps_its_block_size(open_probe, question, typed):
    outcome = open_probe("0.28.0").ask(question("llama-3.1-8b", **typed))
    assert isinstance(outcome, Accepted)
    assert outcome.runtime["cache.block_size"] == typed.get("block_size", 16)


def test_mode_all_of_0_27_pads_to_chunks(open_probe, question):
    outcome = open_probe("0.27.1").ask(question("jamba-1.5-mini", enable_prefix_caching=True))
    assert isinstance(outcome, Accepted)
    assert outcome.resolved["cache.mamba_cache_mode"] == "all"
    assert outcome.runtime["cache.block_size"] == 2048
    assert outcome.runtime["cache.mamba_page_size_padded"] == 8388608


# Bytes of a block of one layer, as above, and layers that share a group: the rarer kind of a pipeline stage.
CAPACITY = [
    ("jamba-v0.1", {}, 80 * 4096, 4),
    ("jamba-v0.1", {"pipeline_parallel_size": 2}, 80 * 4096, 2),
    ("granite-4.0-h-tiny", {}, 400 * 2048, 4),
    ("nemotron-h-8b", {}, 1040 * 4096, 4),
    ("nemotron-h-8b", {"pipeline_parallel_size": 2}, 1040 * 4096, 2),
    ("falcon-h1-0.5b", {}, 800 * 512, 36),
]


@pytest.mark.parametrize(("model", "typed", "page", "layers"), CAPACITY)
def test_blocks_that_fit_if_weights_weighed_nothing(open_probe, question, model, typed, page, layers):
    outcome = open_probe("0.33.0", "a100-80gb").ask(question(model, gpu_memory_utilization=0.5, **typed))
    assert isinstance(outcome, Accepted)
    assert outcome.capacity == Settled({"blocks_at_most": (40 << 30) // (page * layers)})


def test_more_sequences_than_such_blocks_are_refused(open_probe, question):
    probe = open_probe("0.33.0", "a100-80gb")
    fits = (40 << 30) // (1040 * 4096 * 4)
    typed = {"gpu_memory_utilization": 0.5, "max_num_batched_tokens": 100_000}
    refused = probe.ask(question("nemotron-h-8b", max_num_seqs=fits + 1, **typed))
    assert isinstance(refused, Rejected)
    assert refused.phase == "capacity"
    assert "exceeds available Mamba cache blocks" in refused.message


def test_what_is_not_computed_is_said(open_probe, question):
    typed = {"hf_overrides": {"sliding_window": 4096}}
    outcome = open_probe("0.33.0", "a100-80gb").ask(question("jamba-v0.1", **typed))
    assert isinstance(outcome, Accepted)
    assert outcome.capacity == NotKnown("some attention layers keep other than a plain one (sliding_window=4096)")
