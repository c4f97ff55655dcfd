"""Selective scan, one token at a time.

Formula, per channel d and state n (Gu and Dao 2023, "Mamba", algorithm 2 with the simplified Euler step for B):
    dt = delta + bias, through softplus if asked (identity above 20, as torch and the CUDA kernels have it)
    h_t = exp(dt A) h_{t-1} + dt B_t u_t,   y_t = sum_n C_t h_t + D u_t,   out_t = y_t silu(z_t)
All in float32, or float64 if `u` or the state is float64; the state is rounded to its dtype only when it is left
in the pool.
"""

from typing import Any

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


def _token(
    h: Tensor,
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
) -> tuple[Tensor, Tensor]:
    """Take one step of one sequence: state [D, N] and rows [D] or [N], all in the compute dtype."""
    dt = delta if delta_bias is None else delta + delta_bias.to(delta.dtype)
    if delta_softplus:
        dt = torch.where(dt > 20, dt, torch.log1p(torch.exp(dt)))
    h = torch.exp(dt[:, None] * A) * h + (dt * u)[:, None] * B[None, :]
    y = (h * C[None, :]).sum(-1)
    if D is not None:
        y = y + D.to(y.dtype) * u
    if z is not None:
        y = y * (z / (1 + torch.exp(-z)))
    return h, y


def selective_scan_varlen(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
    cu_seqlens: Tensor,
    ssm_state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor,
    metadata: Any = None,  # noqa: ARG001 - derived from the other arguments, so nothing to read
) -> Tensor:
    """See `staticfire.kernels.selective_scan.selective_scan_varlen`."""
    wide = compute_dtype(u, ssm_state)
    out = torch.zeros_like(u)
    starts = cu_seqlens.tolist()
    for b, slot in enumerate(state_indices.tolist()):
        begin, end = starts[b], starts[b + 1]
        if slot < 0 or begin == end:
            continue
        h = torch.zeros(A.shape, dtype=wide, device=u.device)
        if bool(has_initial_state[b]):
            h = ssm_state[slot].to(wide)
        for t in range(begin, end):
            gate = None if z is None else z[t].to(wide)
            rows = (u[t].to(wide), delta[t].to(wide), A.to(wide), B[t].to(wide), C[t].to(wide))
            h, y = _token(h, *rows, D, gate, delta_bias, delta_softplus)
            out[t] = y.to(out.dtype)
        ssm_state[slot] = h.to(ssm_state.dtype)
    return out


def selective_state_update(
    ssm_state: Tensor,
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
    state_indices: Tensor,
    slots: Any = None,  # noqa: ARG001 - derived from state_indices, so nothing to read
) -> Tensor:
    """See `staticfire.kernels.selective_scan.selective_state_update`."""
    rows = u.shape[0]
    every = torch.arange(rows + 1)
    yes = torch.ones(rows, dtype=torch.bool)
    return selective_scan_varlen(
        u, delta, A, B, C, D, z, delta_bias, delta_softplus, every, ssm_state, state_indices, yes
    )
