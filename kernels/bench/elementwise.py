"""Cases of the ops that move, norm, rotate, route and quantize."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from staticfire.kernels import int8_quant, rms_norm, rotary, silu_and_mul, state_copy, topk_softmax
from staticfire.kernels.bench import rivals
from staticfire.kernels.bench.case import Case
from staticfire.kernels.bench.scale import Scale
from staticfire.kernels.int8_quant import cost as int8_quant_cost
from staticfire.kernels.rms_norm import cost as rms_norm_cost
from staticfire.kernels.rotary import cost as rotary_cost
from staticfire.kernels.silu_and_mul import cost as silu_and_mul_cost
from staticfire.kernels.state_copy import cost as state_copy_cost
from staticfire.kernels.topk_softmax import cost as topk_softmax_cost

COPIES = 4
EPS = 1e-6


def cases(scale: Scale) -> list[Case]:
    """Make them."""
    return [*_norms(scale), *_others(scale)]


def _norms(scale: Scale) -> list[Case]:
    tokens, hidden = scale.sequences, scale.hidden
    randn = partial(torch.randn, device=scale.device, dtype=scale.dtype)
    x, weight = randn(tokens, hidden), randn(hidden)
    third = hidden // 4
    parts = (third, (hidden - third) // 2, hidden - third - (hidden - third) // 2)
    shape = f"{tokens} tokens x {hidden}"
    size: dict[str, Any] = {"tokens": tokens, "hidden": hidden, "dtype": scale.name}
    return [
        Case(
            "rms_norm",
            shape,
            rms_norm_cost.rms_norm(**size),
            lambda b: rms_norm.rms_norm(x, weight, EPS, backend=b),
            rivals=rivals.rms_norm(x, weight, EPS),
        ),
        Case(
            "fused_add_rms_norm",
            shape,
            rms_norm_cost.fused_add_rms_norm(**size),
            lambda b: rms_norm.fused_add_rms_norm(x, x, weight, EPS, backend=b)[0],
        ),
        Case(
            "rms_norm_parts",
            shape,
            rms_norm_cost.rms_norm_parts(**size),
            lambda b: rms_norm.rms_norm_parts(x, weight, EPS, parts, backend=b),
        ),
    ]


def _others(scale: Scale) -> list[Case]:
    tokens, name = scale.sequences, scale.name
    randn = partial(torch.randn, device=scale.device, dtype=scale.dtype)
    gated = randn(tokens, 2 * scale.inner)
    q, k = randn(tokens, scale.heads, scale.head_size), randn(tokens, scale.key_heads, scale.head_size)
    positions = torch.arange(tokens, device=scale.device)
    cos_sin = torch.randn(512, scale.head_size, device=scale.device)
    angles = rotary.make_metadata(positions, cos_sin, q.dtype)
    logits, experts = randn(tokens, scale.experts), randn(scale.experts, scale.intermediate, scale.hidden)
    states = torch.randn(40, scale.inner, scale.states, device=scale.device)
    source = torch.arange(COPIES, device=scale.device)

    def copied(backend: Any) -> Tensor:
        state_copy.state_copy(states, source, source + 20, backend=backend)
        return states

    return [
        Case(
            "silu_and_mul",
            f"{tokens} tokens x {2 * scale.inner}",
            silu_and_mul_cost.silu_and_mul(tokens=tokens, width=scale.inner, dtype=name),
            lambda b: silu_and_mul.silu_and_mul(gated, backend=b),
            rivals=rivals.silu_and_mul(gated),
        ),
        Case(
            "rotary_embedding",
            f"{tokens} tokens, {scale.heads} heads",
            rotary_cost.rotary_embedding(
                tokens=tokens, heads=scale.heads, key_heads=scale.key_heads, head_size=scale.head_size, dtype=name
            ),
            lambda b: rotary.rotary_embedding(q, k, positions, cos_sin, metadata=angles, backend=b)[0],
        ),
        Case(
            "topk_softmax",
            f"{tokens} tokens, {scale.experts} experts",
            topk_softmax_cost.topk_softmax(tokens=tokens, experts=scale.experts, top_k=scale.top_k, dtype=name),
            lambda b: topk_softmax.topk_softmax(logits, scale.top_k, False, backend=b)[0],
        ),
        Case(
            "quantize_per_channel",
            f"{scale.experts} experts",
            int8_quant_cost.quantize_per_channel(
                rows=scale.experts * scale.intermediate, width=scale.hidden, dtype=name
            ),
            lambda b: int8_quant.quantize_per_channel(experts, backend=b)[0],
        ),
        Case(
            "state_copy",
            f"{COPIES} states of {scale.inner} x {scale.states}",
            state_copy_cost.state_copy(copies=COPIES, elements=scale.inner * scale.states),
            copied,
        ),
    ]
