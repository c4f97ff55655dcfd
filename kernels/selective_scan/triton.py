"""Selective scan: one program for one sequence and some channels, whose states stay in registers from token to token.

Prompts and single steps run the same kernel, token after token, and not a parallel scan over time: no product of decays
is ever formed that could underflow, and no bit depends on where a prompt was cut.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.interpreter import require_device
from staticfire.kernels.narrow import narrow
from staticfire.kernels.selective_scan.metadata import ScanMetadata
from staticfire.kernels.selective_scan.tiles import choose
from staticfire.kernels.shapes import require_shapes, sizes
from staticfire.kernels.slots import Slots


@triton.jit
def _softplus(x):
    """Return log(1 + e^x), and x above 20.

    1 + e rounds e; log(1 + e) is right when scaled by e over what was really added. Small time steps would otherwise
    lose half their digits.
    """
    e = tl.exp(tl.where(x > 20, 0, x))
    total = 1 + e
    added = total - 1
    return tl.where(x > 20, x, tl.where(added == 0, e, tl.log(total) * (e / tl.where(added == 0, 1, added))))


@triton.jit
def _initial(held, inside, has_initial_state, sequence, WIDE: tl.constexpr):
    """Read the state before the first token; a sequence without one begins at zero, its slot unread."""
    if has_initial_state is not None:
        # Compared as integers: the interpreter has no conjunction of a scalar and a block of bools.
        inside = inside & (tl.load(has_initial_state + sequence).to(tl.int32) + tl.zeros_like(inside).to(tl.int32) != 0)
    return tl.load(held, mask=inside, other=0).to(WIDE)


@triton.jit
def _selective_scan(
    u,
    delta,
    A,
    B,
    C,
    D,
    z,
    delta_bias,
    cu_seqlens,
    state,
    state_indices,
    has_initial_state,
    out,
    u_token,
    u_channel,
    delta_token,
    delta_channel,
    A_channel,
    A_state,
    B_token,
    B_state,
    C_token,
    C_state,
    D_channel,
    z_token,
    z_channel,
    bias_channel,
    state_slot,
    state_channel,
    state_state,
    channels,
    states,
    SOFTPLUS: tl.constexpr,
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
    STATES: tl.constexpr,
    STAGES: tl.constexpr,
):
    """Scan one sequence; without `cu_seqlens` and `has_initial_state`, one token that continues from its slot."""
    sequence = tl.program_id(0)
    begin = sequence.to(tl.int64)
    end = begin + 1
    if cu_seqlens is not None:
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        end = tl.load(cu_seqlens + sequence + 1).to(tl.int64)
    slot = tl.load(state_indices + sequence).to(tl.int64)
    channel = (tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)).to(tl.int64)
    n = tl.arange(0, STATES).to(tl.int64)
    inside, real = channel < channels, n < states
    tile = inside[:, None] & real[None, :]
    if slot < 0:
        for i in range(end - begin):
            tl.store(
                out + (begin + i) * channels + channel, tl.zeros([CHANNELS], dtype=out.dtype.element_ty), mask=inside
            )
    elif begin < end:
        held = state + slot * state_slot + channel[:, None] * state_channel + n[None, :] * state_state
        decay = tl.load(A + channel[:, None] * A_channel + n[None, :] * A_state, mask=tile, other=0).to(WIDE)
        h = _initial(held, tile, has_initial_state, sequence, WIDE)
        bias = tl.zeros([CHANNELS], dtype=WIDE)
        skip = bias
        if delta_bias is not None:
            bias = tl.load(delta_bias + channel * bias_channel, mask=inside, other=0).to(WIDE)
        if D is not None:
            skip = tl.load(D + channel * D_channel, mask=inside, other=0).to(WIDE)
        for i in tl.range(0, end - begin, num_stages=STAGES):
            t = begin + i
            dt = tl.load(delta + t * delta_token + channel * delta_channel, mask=inside, other=0).to(WIDE)
            x = tl.load(u + t * u_token + channel * u_channel, mask=inside, other=0).to(WIDE)
            b = tl.load(B + t * B_token + n * B_state, mask=real, other=0).to(WIDE)
            c = tl.load(C + t * C_token + n * C_state, mask=real, other=0).to(WIDE)
            if delta_bias is not None:
                dt += bias
            if SOFTPLUS:
                dt = _softplus(dt)
            h = tl.exp(dt[:, None] * decay) * h + (dt * x)[:, None] * b[None, :]
            y = tl.sum(h * c[None, :], 1)
            if D is not None:
                y += skip * x
            if z is not None:
                gate = tl.load(z + t * z_token + channel * z_channel, mask=inside, other=0).to(WIDE)
                y = y * (gate / (1 + tl.exp(-gate)))
            tl.store(out + t * channels + channel, narrow(y, out.dtype.element_ty), mask=inside)
        tl.debug_barrier()  # every thread that holds a copy of an element has read it before one of them writes it
        tl.store(held, narrow(h, state.dtype.element_ty), mask=tile)


def _strides(tensor: Tensor | None, dims: int) -> tuple[int, ...]:
    return (0,) * dims if tensor is None else tensor.stride()


def _launch(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
    cu_seqlens: Tensor | None,
    state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor | None,
) -> Tensor:
    require_device(u)
    op = "selective_state_update" if cu_seqlens is None else "selective_scan_varlen"
    tokens, channels = sizes(op, "u", u, "T, D")
    states = sizes(op, "A", A, "D, N")[1]
    sequences = tokens if cu_seqlens is None else len(state_indices)
    require_shapes(
        op,
        delta=(delta, (tokens, channels)),
        A=(A, (channels, states)),
        B=(B, (tokens, states)),
        C=(C, (tokens, states)),
        D=(D, (channels,)),
        z=(z, (tokens, channels)),
        delta_bias=(delta_bias, (channels,)),
        cu_seqlens=(cu_seqlens, (sequences + 1,)),
        ssm_state=(state, (*state.shape[:1], channels, states)),
        state_indices=(state_indices, (sequences,)),
        has_initial_state=(has_initial_state, (sequences,)),
    )
    out = u.new_empty(tokens, channels)
    if out.numel():
        wide = compute_dtype(u, state)
        tile = choose(channels, states, wide.itemsize, step=cu_seqlens is None)
        _selective_scan[sequences, triton.cdiv(channels, tile.channels)](
            u,
            delta,
            A,
            B,
            C,
            D,
            z,
            delta_bias,
            None if cu_seqlens is None else cu_seqlens.contiguous(),
            state,
            state_indices.contiguous(),
            None if has_initial_state is None else has_initial_state.contiguous(),
            out,
            *u.stride(),
            *delta.stride(),
            *A.stride(),
            *B.stride(),
            *C.stride(),
            *_strides(D, 1),
            *_strides(z, 2),
            *_strides(delta_bias, 1),
            *state.stride(),
            channels,
            states,
            SOFTPLUS=delta_softplus,
            WIDE=tl.float64 if wide is torch.float64 else tl.float32,
            CHANNELS=tile.channels,
            STATES=tile.states,
            STAGES=tile.stages,
            num_warps=tile.warps,
        )
    return out


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
    metadata: ScanMetadata | None = None,  # noqa: ARG001 - of the torch backend
) -> Tensor:
    """See `staticfire.kernels.selective_scan.selective_scan_varlen`."""
    return _launch(
        u, delta, A, B, C, D, z, delta_bias, delta_softplus, cu_seqlens, ssm_state, state_indices, has_initial_state
    )


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
    slots: Slots | None = None,  # noqa: ARG001 - of the torch backend
) -> Tensor:
    """See `staticfire.kernels.selective_scan.selective_state_update`."""
    return _launch(u, delta, A, B, C, D, z, delta_bias, delta_softplus, None, ssm_state, state_indices, None)
