"""Operands of other shapes than a kernel takes them for: it would read where strides lead, whatever lies there.

Every operand of every op is cut short along every dimension. Either the launch is refused and names an operand, or the
dimension is free, and every access lies in a tensor of the launch.
"""

import inspect
from typing import Any

import pytest
import torch

from staticfire.kernels.bounds import strict_bounds
from staticfire.kernels.registry import OPS

pytestmark = [pytest.mark.engine, pytest.mark.interp]

f = torch.ones


def ints(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int64)


CONV: dict[str, Any] = {
    "weight": f(4, 3),
    "bias": f(4),
    "conv_state": f(6, 4, 2),
    "state_indices": ints(1, 0),
    "activation": None,
}
STEP: dict[str, Any] = {
    "u": f(2, 4),
    "delta": f(2, 4),
    "A": -f(4, 3),
    "B": f(2, 3),
    "C": f(2, 3),
    "D": f(4),
    "z": f(2, 4),
    "delta_bias": f(4),
    "delta_softplus": True,
    "ssm_state": f(6, 4, 3),
    "state_indices": ints(1, 0),
}
VARLEN: dict[str, Any] = {"cu_seqlens": ints(0, 1, 2), "has_initial_state": torch.tensor([True, True])}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "rms_norm": {"x": f(2, 4), "weight": f(4), "eps": 1e-6},
    "fused_add_rms_norm": {"x": f(2, 4), "residual": f(2, 4), "weight": f(4), "eps": 1e-6},
    "rms_norm_parts": {"x": f(2, 4), "weight": f(4), "eps": 1e-6, "sizes": (1, 3)},
    "silu_and_mul": {"x": f(2, 4)},
    "rotary_embedding": {"q": f(2, 3, 4), "k": f(2, 2, 4), "positions": ints(0, 1), "cos_sin": f(6, 4)},
    "causal_conv1d_varlen": {"x": f(2, 4), **CONV, **VARLEN},
    "causal_conv1d_update": {"x": f(2, 4), **CONV},
    "selective_scan_varlen": {**STEP, **VARLEN},
    "selective_state_update": STEP,
    "reshape_and_cache": {
        "key": f(2, 2, 4),
        "value": f(2, 2, 4),
        "kv_cache": f(3, 2, 4, 2, 4),
        "slot_mapping": ints(1, 2),
    },
    "paged_attention": {
        "q": f(2, 4, 4),
        "kv_cache": f(3, 2, 4, 2, 4),
        "block_tables": ints(0, 0, 1, 0).view(2, 2),
        "cu_seqlens_q": ints(0, 1, 2),
        "seq_lens": ints(1, 2),
        "scale": 1.0,
    },
    "topk_softmax": {"router_logits": f(2, 4), "top_k": 2, "renormalize": True},
    "fused_moe": {
        "x": f(2, 4),
        "w13": torch.ones(3, 6, 4, dtype=torch.int8),
        "w2": torch.ones(3, 4, 3, dtype=torch.int8),
        "topk_weights": f(2, 2),
        "topk_ids": ints(0, 1, 1, 0).view(2, 2),
        "w13_scale": f(3, 6),
        "w2_scale": f(3, 4),
    },
    "int8_linear": {"x": f(2, 4), "w": torch.ones(3, 4, dtype=torch.int8), "scale": f(3), "bias": f(3)},
    "quantize_per_channel": {"w": f(2, 4)},
    "state_copy": {"state": f(6, 4), "src": ints(1, 2), "dst": ints(3, 4)},
}
FREE = {
    ("rms_norm", "x", 0),
    ("rms_norm_parts", "x", 0),
    ("silu_and_mul", "x", 0),
    ("rotary_embedding", "q", 1),
    ("rotary_embedding", "k", 1),
    ("rotary_embedding", "cos_sin", 0),
    *((op, "conv_state", 0) for op in ("causal_conv1d_varlen", "causal_conv1d_update")),
    *((op, "ssm_state", 0) for op in ("selective_scan_varlen", "selective_state_update")),
    *(("reshape_and_cache", "kv_cache", dimension) for dimension in (0, 2)),
    *(("paged_attention", "kv_cache", dimension) for dimension in (0, 2)),
    ("paged_attention", "block_tables", 1),
    ("topk_softmax", "router_logits", 0),
    ("topk_softmax", "router_logits", 1),
    ("int8_linear", "x", 0),
    ("quantize_per_channel", "w", 0),
    ("quantize_per_channel", "w", 1),
    ("state_copy", "state", 0),
    ("state_copy", "state", 1),
}
CUTS = [
    pytest.param(op, name, dimension, id=f"{op}-{name}-{dimension}")
    for op, arguments in ARGUMENTS.items()
    for name, value in arguments.items()
    if isinstance(value, torch.Tensor)
    for dimension in range(value.dim())
    # Its length is told by what `cu_seqlens` holds, which a launch does not wait for.
    if (op, name, dimension) != ("causal_conv1d_varlen", "x", 0)
]


def test_every_operand_of_every_op_is_looked_at():
    assert set(ARGUMENTS) == set(OPS)
    for op, arguments in ARGUMENTS.items():
        options = {"backend", "metadata", "slots", "k_scale", "v_scale"}
        assert set(inspect.signature(OPS[op].public).parameters) - options == set(arguments), op


@pytest.mark.parametrize(("op", "name", "dimension"), CUTS)
def test_an_operand_that_is_too_short_is_refused(op, name, dimension):
    arguments = ARGUMENTS[op]
    short = arguments | {name: arguments[name].narrow(dimension, 0, arguments[name].shape[dimension] - 1)}
    with strict_bounds():
        OPS[op].public(**arguments, backend="triton")
        if (op, name, dimension) in FREE:
            OPS[op].public(**short, backend="triton")
            return
        with pytest.raises(ValueError, match=rf"(?s)^({op}|kv_cache): .*got "):
            OPS[op].public(**short, backend="triton")


@pytest.mark.parametrize("op", sorted({*ARGUMENTS} - {"silu_and_mul", "quantize_per_channel", "state_copy"}))
def test_an_operand_of_too_many_dimensions_is_refused(op):
    arguments = ARGUMENTS[op]
    name = next(iter(arguments))
    with pytest.raises(ValueError, match=f"{op}: .*got "):
        OPS[op].public(**arguments | {name: arguments[name][None]}, backend="triton")


def test_all_faults_are_told_at_once():
    wrong = ARGUMENTS["fused_add_rms_norm"] | {"residual": f(2, 3), "weight": f(5)}
    with pytest.raises(ValueError, match=r"residual is \[2, 4\]; got \[2, 3\], weight is \[4\]; got \[5\]"):
        OPS["fused_add_rms_norm"].public(**wrong, backend="triton")


def test_heads_that_no_key_head_serves_are_refused():
    wrong = ARGUMENTS["paged_attention"] | {"q": f(2, 5, 4)}
    with pytest.raises(ValueError, match="Hq is a multiple of Hk, which is 2; got 5"):
        OPS["paged_attention"].public(**wrong, backend="triton")
