"""What is compiled ahead of time of the ops that norm, gate, rotate, move, route and quantize is what they launch."""

from functools import partial

import pytest
import torch

from launches import record
from staticfire.kernels import int8_quant, reshape_and_cache, rms_norm, rotary, silu_and_mul, state_copy, topk_softmax
from staticfire.kernels.int8_quant import triton as quantizing
from staticfire.kernels.registry import OPS
from staticfire.kernels.reshape_and_cache import triton as writing
from staticfire.kernels.rms_norm import triton as norming
from staticfire.kernels.rotary import triton as rotating
from staticfire.kernels.silu_and_mul import triton as gating
from staticfire.kernels.state_copy import triton as copying
from staticfire.kernels.targets import TARGETS
from staticfire.kernels.topk_softmax import triton as routing

pytestmark = pytest.mark.engine

DTYPES = {
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "fp8e5": torch.float8_e5m2,
    "fp8e4nv": torch.float8_e4m3fn,
}
TOKENS = 3


def variants(op):
    return {variant.name: variant for variant in OPS[op].variants(TARGETS["sm_90"])}


def zeros(name, *shape):
    return torch.zeros(*shape, dtype=DTYPES[name.split("-")[0]])


def number(name, letter):
    """The number behind a letter in a name such as bf16-d128."""
    return next(int(part[1:]) for part in name.split("-") if part[0] == letter and part[1:].isdigit())


@pytest.mark.parametrize("op", ["rms_norm", "fused_add_rms_norm", "rms_norm_parts"])
def test_the_norms(op):
    for name, variant in variants(op).items():
        width = number(name, "p") * 3 if op == "rms_norm_parts" else number(name, "h")
        x, weight = zeros(name, TOKENS, width), zeros(name, width)

        def launch(x=x, weight=weight):
            if op == "rms_norm":
                rms_norm.rms_norm(x, weight, 1e-6, backend="triton")
            elif op == "fused_add_rms_norm":
                rms_norm.fused_add_rms_norm(x, x, weight, 1e-6, backend="triton")
            else:
                rms_norm.rms_norm_parts(x, weight, 1e-6, (x.shape[1] // 3,) * 3, backend="triton")

        (launched,) = record(norming, "_rms_norm", launch)
        launched.assert_is(variant)


def test_the_gate():
    for name, variant in variants("silu_and_mul").items():
        x = zeros(name, TOKENS, 8192)
        (launched,) = record(gating, "_silu_and_mul", partial(silu_and_mul.silu_and_mul, x, backend="triton"))
        launched.assert_is(variant)


def test_the_rotation():
    for name, variant in variants("rotary_embedding").items():
        size = number(name, "d")
        x, positions, angles = zeros(name, TOKENS, 16, size), torch.arange(TOKENS), torch.zeros(8, size)
        launched = record(
            rotating,
            "_rotary",
            partial(rotary.rotary_embedding, x, x, positions, angles, backend="triton"),
        )
        assert len(launched) == 2
        for one in launched:
            one.assert_is(variant)


def test_the_cache_writes():
    for name, variant in variants("reshape_and_cache").items():
        size, held = number(name, "d"), name.split("-")[-2] if name.count("-") == 2 else name
        key, cache = zeros(name, TOKENS, 8, size), zeros(held, 4, 2, 16, 8, size)
        scales = {} if held == name else {"k_scale": 0.5, "v_scale": 0.25}

        def launch(key=key, cache=cache, scales=scales):
            slots = torch.arange(TOKENS)
            reshape_and_cache.reshape_and_cache(key, key, cache, slots, **scales, backend="triton")

        (launched,) = record(writing, "_reshape_and_cache", launch)
        launched.assert_is(variant)


def test_the_state_copies():
    for name, variant in variants("state_copy").items():
        pool = zeros(name, 3, number(name, "n"), 512).transpose(1, 2)
        slots = torch.arange(3)
        (launched,) = record(
            copying,
            "_state_copy",
            partial(state_copy.state_copy, pool, slots, slots, backend="triton"),
        )
        launched.assert_is(variant)


def test_the_routing():
    for name, variant in variants("topk_softmax").items():
        logits, top_k = zeros(name, TOKENS, number(name, "e")), number(name, "k")
        renormalize = bool(variant.constexprs["RENORMALIZE"])
        (launched,) = record(
            routing,
            "_topk_softmax",
            partial(topk_softmax.topk_softmax, logits, top_k, renormalize, backend="triton"),
        )
        launched.assert_is(variant)


def test_the_quantization():
    for name, variant in variants("quantize_per_channel").items():
        w = zeros(name, 2, 1024)
        (launched,) = record(quantizing, "_quantize", partial(int8_quant.quantize_per_channel, w, backend="triton"))
        launched.assert_is(variant)
