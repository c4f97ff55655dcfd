"""Whole models on several ranks against one, in float64, chunk by chunk through caches of their own."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.models.registry import family
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.parallel.split import Part
from staticfire.engine.quantization.registry import quantization_method
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.worker.worker import Worker
from thread_group import on_ranks
from tp_models import Outcome, assert_same, generate, resolved

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

KINDS = ("attention", "mamba", "moe", "llama", "qwen3")


def config_json(kind: str, size: int, share: int, kv: int, groups: int, vocabulary: int, bias: bool) -> dict[str, Any]:
    """Sizes that `size` ranks divide where the layer needs it; key/value heads divide the ranks or are divided."""
    heads = max(size, kv) * groups
    base = {
        "vocab_size": vocabulary,
        "hidden_size": 8 * size,
        "intermediate_size": share * size,
        "num_hidden_layers": 2,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "head_dim": 4,
        "max_position_embeddings": 256,
        "tie_word_embeddings": bias,
    }
    if kind in {"llama", "qwen3"}:
        name = {"llama": "Llama", "qwen3": "Qwen3"}[kind]
        return base | {"model_type": kind, "architectures": [f"{name}ForCausalLM"], "attention_bias": bias}
    attention = {"attn_layer_period": 1, "attn_layer_offset": 0} if kind == "attention" else {}
    mamba = {"attn_layer_period": 3, "attn_layer_offset": 2} if kind != "attention" else {}
    return base | attention | mamba | {
        "model_type": "jamba",
        "architectures": ["JambaForCausalLM"],
        "hidden_size": 4 * size,
        "mamba_expand": 2,
        "mamba_d_state": 4,
        "mamba_d_conv": 3,
        "mamba_conv_bias": bias,
        "mamba_proj_bias": bias,
        "num_experts": 3 if kind == "moe" else 1,
        "expert_layer_period": 1,
        "expert_layer_offset": 0,
    }  # fmt: skip


def on_rank(config: ResolvedConfig, group: Group) -> Outcome:
    """Log-probabilities of all tokens at every position of three requests, one of them in several chunks."""
    worker = Worker(config, group)
    worker.load()
    worker.align()
    worker.allocate()
    vocabulary = config.model.info.vocab_size
    params = SamplingParams(max_tokens=3, ignore_eos=True, logprobs=vocabulary, prompt_logprobs=vocabulary)
    prompts = [[(3 * number + 5 * n) % vocabulary for n in range(length)] for number, length in enumerate((1, 7, 29))]
    return generate(worker.config, worker.runner, prompts, params)


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    size=st.sampled_from([2, 3, 4]),
    share=st.integers(1, 4),
    kv=st.integers(1, 4),
    groups=st.integers(1, 2),
    vocabulary=st.integers(8, 21),
    bias=st.booleans(),
    caching=st.booleans(),
)
def test_ranks_compute_what_one_computes(
    kind: str, size: int, share: int, kv: int, groups: int, vocabulary: int, bias: bool, caching: bool
):
    if kv % size and size % kv:
        kv = size
    hf = config_json(kind, size, share, kv, groups, vocabulary, bias)
    wanted = on_rank(resolved(hf, 1, enable_prefix_caching=caching), SINGLE)
    assert wanted.longest_chunk < 29
    found = on_ranks(size, lambda group: on_rank(resolved(hf, size, enable_prefix_caching=caching), group))
    for outcome in found:
        assert outcome == found[0]  # to the bit: ranks that drift apart would part at the next choice of an expert
        assert_same(outcome, wanted)


def test_int8_experts_on_two_ranks():
    hf = config_json("moe", 2, 4, 1, 1, 13, bias=False)
    wanted = on_rank(resolved(hf, 1, quantization="experts_int8"), SINGLE)
    plain = on_rank(resolved(hf, 1), SINGLE)
    found = on_ranks(2, lambda group: on_rank(resolved(hf, 2, quantization="experts_int8"), group))
    for outcome in found:
        assert_same(outcome, wanted)
    firsts = zip(plain.prompt_logprobs["0.1"], wanted.prompt_logprobs["0.1"], strict=True)
    assert max(abs(a.logprob - b.logprob) for a, b in firsts) > 1e-6


class Recorder:
    """Weights that note which elements were taken."""

    dtype = torch.float32

    def __init__(self, shapes: dict[str, tuple[int, ...]]) -> None:
        self.taken = {name: torch.zeros(shape, dtype=torch.int64) for name, shape in shapes.items()}

    def take(self, name: str, part: Part | None = None) -> torch.Tensor:
        taken = self.taken[name]
        if part is None:
            taken += 1
            return torch.zeros(taken.shape)
        sizes = list(taken.shape)
        sizes[part.dim] = 0
        for start, stop in part.ranges:
            taken.narrow(part.dim, start, stop - start).add_(1)
            sizes[part.dim] += stop - start
        return torch.zeros(sizes)

    def finish(self) -> None:
        raise NotImplementedError


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kv", [1, 4])
def test_the_parts_of_all_ranks_cover_every_element(kind: str, kv: int):
    """Split tensors go to one rank each, small ones to all; keys and values to as many as share a head."""
    config = resolved(config_json(kind, 4, 2, kv, 1, 13, bias=True), 4)
    info = config.model.info
    module = family(info.architecture)
    shapes = {spec.name: spec.shape for spec in module.tensor_specs(info) if spec.presence == "required"}
    totals = {name: torch.zeros(shape, dtype=torch.int64) for name, shape in shapes.items()}

    def build(group: Group) -> dict[str, torch.Tensor]:
        weights = Recorder(shapes)
        module.build(info, weights, quantization_method(None), 64, group)
        return weights.taken

    for taken in on_ranks(4, build):
        for name, counts in taken.items():
            assert counts.max() <= 1, name
            totals[name] += counts
    copied = {"norm", "router", "o_proj.bias", "out_proj.bias"}
    for name, total in totals.items():
        if any(part in name for part in copied):
            assert set(total.flatten().tolist()) == {4}, name
        elif "k_proj" in name or "v_proj" in name:
            assert set(total.flatten().tolist()) == {4 // kv}, name
        else:
            assert set(total.flatten().tolist()) == {1}, name
