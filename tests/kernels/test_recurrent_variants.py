"""What is compiled ahead of time of the convolution and the scan is what they launch; what they cost is counted."""

from typing import Any

import pytest
import torch

from launches import record
from staticfire.kernels.causal_conv1d import causal_conv1d_update, causal_conv1d_varlen
from staticfire.kernels.causal_conv1d import triton as conv
from staticfire.kernels.causal_conv1d.cost import causal_conv1d_update as conv_update_cost
from staticfire.kernels.causal_conv1d.cost import causal_conv1d_varlen as conv_cost
from staticfire.kernels.registry import OPS
from staticfire.kernels.selective_scan import selective_scan_varlen, selective_state_update
from staticfire.kernels.selective_scan import triton as scan
from staticfire.kernels.selective_scan.cost import selective_scan_varlen as scan_cost
from staticfire.kernels.selective_scan.cost import selective_state_update as update_cost
from staticfire.kernels.targets import find_target

pytestmark = pytest.mark.engine

CHANNELS, SEQUENCES = 512, 5
DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}
CU = torch.tensor([0, 1, 2, 3, 4, 5], dtype=torch.int32)
SLOTS = torch.arange(SEQUENCES, dtype=torch.int32)
YES = torch.ones(SEQUENCES, dtype=torch.bool)


def pool(inner, dtype, *, last=False):
    if last:
        return torch.zeros(SEQUENCES, CHANNELS, inner, dtype=dtype)
    return torch.zeros(SEQUENCES, inner, CHANNELS, dtype=dtype).transpose(1, 2)


def variants(op):
    return {variant.name: variant for variant in OPS[op].variants(find_target("sm_90"))}


@pytest.mark.parametrize("op", ["causal_conv1d_varlen", "causal_conv1d_update"])
def test_the_convolution_launches_what_is_compiled(op):
    for name, variant in variants(op).items():
        dtype, width = DTYPES[name.split("-")[0]], int(name.split("-w")[1])
        x, weight, bias = (
            torch.zeros(*s, dtype=dtype) for s in ((SEQUENCES, CHANNELS), (CHANNELS, width), (CHANNELS,))
        )
        state = pool(width - 1, dtype)

        def launch(x=x, state=state, weight=weight, bias=bias):
            if op == "causal_conv1d_update":
                causal_conv1d_update(x, state, weight, bias, SLOTS, "silu", backend="triton")
            else:
                causal_conv1d_varlen(x, weight, bias, CU, state, SLOTS, YES, "silu", backend="triton")

        (launched,) = record(conv, f"_{op}", launch)
        launched.assert_is(variant)


@pytest.mark.parametrize("op", ["selective_scan_varlen", "selective_state_update"])
def test_the_scan_launches_what_is_compiled(op):
    where: dict[str, Any] = {"cu_seqlens": CU, "state_indices": SLOTS, "has_initial_state": YES}
    for name, variant in variants(op).items():
        dtype, states = DTYPES[name.split("-")[0]], int(name.split("-")[1][1:])
        last = name.endswith("states-last")
        decay = torch.zeros(CHANNELS, states) if last else torch.zeros(states, CHANNELS).t()
        wide, small = torch.zeros(SEQUENCES, CHANNELS, dtype=dtype), torch.zeros(SEQUENCES, states, dtype=dtype)
        state, vector = pool(states, torch.float32, last=last), torch.zeros(CHANNELS)
        arguments: dict[str, Any] = {
            **dict.fromkeys(("u", "delta", "z"), wide),
            **dict.fromkeys(("B", "C"), small),
            **dict.fromkeys(("D", "delta_bias"), vector),
            "A": decay,
            "delta_softplus": True,
        }

        def launch(state=state, arguments=arguments):
            if op == "selective_state_update":
                selective_state_update(state, **arguments, state_indices=SLOTS, backend="triton")
            else:
                selective_scan_varlen(**arguments, **where, ssm_state=state, backend="triton")

        (launched,) = record(scan, "_selective_scan", launch)
        launched.assert_is(variant)


@pytest.mark.parametrize("op", ["causal_conv1d_varlen", "causal_conv1d_update"])
def test_every_width_of_the_field_is_compiled(op):
    assert {"bf16-w2", "bf16-w3", "bf16-w4"} <= set(variants(op))


@pytest.mark.parametrize("op", ["selective_scan_varlen", "selective_state_update"])
def test_every_state_size_of_the_field_is_compiled(op):
    assert {"bf16-n16", "bf16-n64", "bf16-n128", "bf16-n256"} <= set(variants(op))


def test_programs_cover_every_token_without_a_look_at_the_lengths():
    x, weight, state = torch.zeros(100, 300), torch.zeros(300, 4), torch.zeros(3, 300, 3)
    cu, slots, yes = torch.tensor([0, 33, 33, 100]), torch.arange(3), torch.ones(3, dtype=torch.bool)
    (launched,) = record(
        conv,
        "_causal_conv1d_varlen",
        lambda: causal_conv1d_varlen(x, weight, None, cu, state, slots, yes, None, backend="triton"),
    )
    assert launched.grid == (100 // 32 + 3, 3)


def test_costs_are_those_of_the_tensors():
    # Counted on tensors of these shapes: x and out 2 bytes an element, the state 3 of 4 taps, weight and bias.
    cost = conv_cost(tokens=10, channels=8, width=4, sequences=2)
    assert cost.read == 10 * 8 * 2 + 2 * 8 * 3 * 2 + 8 * 4 * 2 + 8 * 2
    assert cost.written == 10 * 8 * 2 + 2 * 8 * 3 * 2
    assert cost.operations == 10 * 8 * (4 * 2 + 1 + 4)
    assert conv_update_cost(sequences=3, channels=8) == conv_cost(tokens=3, channels=8, sequences=3)
    scanned = scan_cost(tokens=10, channels=8, states=16, sequences=2)
    inputs = 3 * 10 * 8 * 2 + 2 * 10 * 16 * 2
    assert scanned.read == inputs + 2 * 8 * 16 * 4 + 8 * 16 * 4 + 8 * 4 + 8 * 4
    assert scanned.written == 10 * 8 * 2 + 2 * 8 * 16 * 4
    assert scanned.operations == 10 * 8 * (16 * 7 + 12)
    assert update_cost(sequences=3, channels=8) == scan_cost(tokens=3, channels=8, sequences=3)
    halved = scan_cost(tokens=10, channels=8, sequences=2, state_dtype="bf16")
    assert scan_cost(tokens=10, channels=8, sequences=2).written - halved.written == 2 * 8 * 16 * 2
