"""Every backend against plain PyTorch that others wrote: mamba.py, and the references of flash-linear-attention.

Float64 throughout, so that a difference is one of meaning and not of rounding.
"""

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

import kernel_cases as cases
from attention_cases import batch
from staticfire.kernels.paged_attention import paged_attention
from staticfire.kernels.rms_norm import fused_add_rms_norm, rms_norm
from staticfire.kernels.rotary import rotary_embedding
from staticfire.kernels.selective_scan import selective_scan_varlen, selective_state_update
from staticfire.kernels.testing import assert_close

pytestmark = pytest.mark.engine

BACKENDS = ["torch", "reference", pytest.param("triton", marks=pytest.mark.interp)]


def mamba_py(name: str, channels: int, states: int) -> Callable[..., Tensor]:
    """A method of its block, which reads nothing of the block but the two sizes."""
    from mambapy.mamba import MambaBlock

    block = SimpleNamespace(config=SimpleNamespace(d_inner=channels, d_state=states))
    return lambda *args: getattr(MambaBlock, name)(block, *args)


@pytest.fixture(scope="module")
def fla() -> SimpleNamespace:
    """The references of flash-linear-attention; its import warns of a missing GPU, and uses what torch deprecates."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fla.modules.norm.layernorm import rms_norm_ref
        from fla.modules.rotary.ops import rotary_embedding_ref
        from fla.ops.attn.naive import naive_parallel_attn
    return SimpleNamespace(attention=naive_parallel_attn, rms_norm=rms_norm_ref, rotary=rotary_embedding_ref)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("theirs", ["selective_scan", "selective_scan_seq"])
@pytest.mark.parametrize(("tokens", "channels", "states"), [(1, 3, 1), (13, 5, 4), (64, 2, 16)])
def test_selective_scan_is_that_of_mamba_py(backend, theirs, tokens, channels, states):
    make = cases.Maker(61, torch.float64)
    u, delta, decay = make(tokens, channels), make(tokens, channels).abs(), -make(channels, states).abs()
    b, c, d = make(tokens, states), make(tokens, states), make(1, channels)[0]
    expected = mamba_py(theirs, channels, states)(u[None], delta[None], decay, b[None], c[None], d)[0]
    common: dict[str, Any] = {"A": decay, "D": d, "z": None, "delta_bias": None, "delta_softplus": False}
    state = torch.full((1, channels, states), torch.nan, dtype=torch.float64)
    out = selective_scan_varlen(
        u=u,
        delta=delta,
        B=b,
        C=c,
        **common,
        cu_seqlens=torch.tensor([0, tokens]),
        ssm_state=state,
        state_indices=torch.tensor([0]),
        has_initial_state=torch.tensor([False]),
        backend=backend,
    )
    assert_close("selective_scan_varlen", out, expected)
    state.zero_()
    for t in range(tokens):
        row: dict[str, Any] = {"u": u[t : t + 1], "delta": delta[t : t + 1], "B": b[t : t + 1], "C": c[t : t + 1]}
        step = selective_state_update(
            **row, **common, ssm_state=state, state_indices=torch.tensor([0]), backend=backend
        )
        assert_close("selective_state_update", step[0], expected[t])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("heads", [(4, 4), (6, 2), (3, 1)])
def test_attention_is_that_of_flash_linear_attention(fla, backend, heads):
    make = cases.Maker(62, torch.float64)
    q, cache, tables, cu, lengths, lines = batch(make, [(19, 19)], heads, 4)
    keys, values = (lines[0][:, i][None] for i in range(2))
    expected, _ = fla.attention(q[None], keys, values, scale=0.3)
    ours = paged_attention(q, cache, tables, cu, lengths, 0.3, backend=backend)
    assert_close("paged_attention", ours, expected[0])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [1, 8, 75])
def test_norms_are_those_of_flash_linear_attention(fla, backend, size):
    make = cases.Maker(63, torch.float64)
    x, residual, weight = make(5, size), make(5, size), make(1, size)[0]
    assert_close("rms_norm", rms_norm(x, weight, 1e-6, backend=backend), fla.rms_norm(x, weight, None, eps=1e-6))
    ours = fused_add_rms_norm(x, residual, weight, 1e-6, backend=backend)
    expected = fla.rms_norm(x, weight, None, residual=residual, eps=1e-6, prenorm=True)
    for actual, wanted in zip(ours, expected, strict=True):
        assert_close("fused_add_rms_norm", actual, wanted)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rotation_is_that_of_flash_linear_attention(fla, backend):
    make = cases.Maker(64, torch.float64)
    q, k, positions = make(6, 4, 16), make(6, 2, 16), torch.tensor([0, 1, 2, 31, 30, 7])
    angles = make(32, 8, scale=3.0)
    table = torch.cat((angles.cos(), angles.sin()), -1)
    ours = rotary_embedding(q, k, positions, table, backend=backend)
    for before, after in zip((q, k), ours, strict=True):
        expected = fla.rotary(before, angles.cos()[positions], angles.sin()[positions])
        assert_close("rotary_embedding", after, expected)
