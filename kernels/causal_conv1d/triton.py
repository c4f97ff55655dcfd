"""Causal depthwise convolution: one program for some tokens of one sequence and some channels; and its one-token step.

Only the program with a sequence's first tokens reads the state, and it alone writes it: no program waits for another.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from staticfire.kernels.causal_conv1d.metadata import ConvMetadata
from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.interpreter import require_device
from staticfire.kernels.jit import owner_of
from staticfire.kernels.narrow import narrow
from staticfire.kernels.shapes import require_shapes, sizes
from staticfire.kernels.slots import Slots

TOKENS = 32
CHANNELS = 128
STEP_CHANNELS = 256


def warps(tokens: int, channels: int) -> int:
    """Warps for a tile: 16 elements a thread leave the registers for the taps of all of them."""
    return max(1, tokens * channels // 512)


@triton.jit
def _finish(total, bias, channel, bias_channel, channels, SILU: tl.constexpr):
    """Add the bias, if there is one, and gate."""
    if bias is not None:
        total += tl.load(bias + channel * bias_channel, mask=channel < channels, other=0).to(total.dtype)
    if SILU:
        total = total / (1 + tl.exp(-total))
    return total


@triton.jit
def _leave(
    x, row, channel, inside, start, end, known, x_token, x_channel, state_tap, HISTORY: tl.constexpr, TAPS: tl.constexpr
):
    """Leave the last HISTORY inputs of tokens start to end in the state, what it holds itself before its first token.

    Of the state, `row` are the channels' places, and the newest `known` inputs may be read.
    """
    if HISTORY > 0:
        tap = tl.arange(0, TAPS).to(tl.int64)[:, None]
        token = end - HISTORY + tap
        kept = (tap < HISTORY) & inside
        new = tl.load(x + token * x_token + channel * x_channel, mask=kept & (token >= start), other=0)
        old = row + (token - start + HISTORY) * state_tap
        past = tl.load(old, mask=kept & (token < start) & (token >= start - known), other=0)
        if new.dtype != past.dtype:
            new = narrow(new, past.dtype)
        # Threads that hold the same element, or move it to another's place, have read before any of them writes.
        tl.debug_barrier()
        tl.store(row + tap * state_tap, tl.where(token < start, past, new), mask=kept)


@triton.jit
def _causal_conv1d_varlen(
    x,
    weight,
    bias,
    cu_seqlens,
    state,
    state_indices,
    has_initial_state,
    out,
    x_token,
    x_channel,
    weight_channel,
    weight_tap,
    bias_channel,
    state_slot,
    state_channel,
    state_tap,
    sequences,
    channels,
    SILU: tl.constexpr,
    HISTORY: tl.constexpr,
    WIDE: tl.constexpr,
    TOKENS: tl.constexpr,
    CHANNELS: tl.constexpr,
    TAPS: tl.constexpr,
):
    sequence, start, end, begin = owner_of(tl.program_id(0), cu_seqlens, sequences, TOKENS)
    if begin < end:
        slot = tl.load(state_indices + sequence).to(tl.int64)
        channel = (tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)).to(tl.int64)[None, :]
        token = (begin + tl.arange(0, TOKENS)).to(tl.int64)[:, None]
        inside = (token < end) & (channel < channels)
        total = tl.zeros([TOKENS, CHANNELS], dtype=WIDE)
        if slot >= 0:
            row = state + slot * state_slot + channel * state_channel
            known = tl.load(has_initial_state + sequence).to(tl.int32) * HISTORY
            for k in tl.static_range(HISTORY + 1):
                column = tl.full([], k, tl.int64)
                then = token + (k - HISTORY)
                new = x + then * x_token + channel * x_channel
                value = tl.load(new, mask=inside & (then >= start), other=0).to(WIDE)
                if k < HISTORY:
                    old = row + (then - start + HISTORY) * state_tap
                    past = tl.load(old, mask=inside & (then < start) & (then >= start - known), other=0)
                    value = tl.where(then < start, past.to(WIDE), value)
                tap = tl.load(weight + channel * weight_channel + column * weight_tap, mask=channel < channels, other=0)
                total += tap.to(WIDE) * value
            total = _finish(total, bias, channel, bias_channel, channels, SILU)
            if begin == start:
                _leave(
                    x, row, channel, channel < channels, start, end, known, x_token, x_channel, state_tap, HISTORY, TAPS
                )
        tl.store(out + token * channels + channel, narrow(total, out.dtype.element_ty), mask=inside)


@triton.jit
def _causal_conv1d_update(
    x,
    state,
    weight,
    bias,
    state_indices,
    out,
    x_row,
    x_channel,
    state_slot,
    state_channel,
    state_tap,
    weight_channel,
    weight_tap,
    bias_channel,
    channels,
    SILU: tl.constexpr,
    HISTORY: tl.constexpr,
    WIDE: tl.constexpr,
    CHANNELS: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    channel = (tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)).to(tl.int64)
    inside = channel < channels
    slot = tl.load(state_indices + row).to(tl.int64)
    total = tl.zeros([CHANNELS], dtype=WIDE)
    if slot >= 0:
        held = state + slot * state_slot + channel * state_channel
        taps = weight + channel * weight_channel
        last = tl.full([], HISTORY, tl.int64)
        for k in tl.static_range(HISTORY):
            column = tl.full([], k, tl.int64)
            past = tl.load(held + column * state_tap, mask=inside)
            total += tl.load(taps + column * weight_tap, mask=inside, other=0).to(WIDE) * past.to(WIDE)
            if k > 0:
                tl.debug_barrier()  # every thread that holds a copy of the column before this one has read it
                tl.store(held + (column - 1) * state_tap, past, mask=inside)
        new = tl.load(x + row * x_row + channel * x_channel, mask=inside, other=0)
        total += tl.load(taps + last * weight_tap, mask=inside, other=0).to(WIDE) * new.to(WIDE)
        total = _finish(total, bias, channel, bias_channel, channels, SILU)
        if HISTORY > 0:
            if new.dtype != state.dtype.element_ty:
                new = narrow(new, state.dtype.element_ty)
            tl.debug_barrier()
            tl.store(held + (last - 1) * state_tap, new, mask=inside)
    tl.store(out + row * channels + channel, narrow(total, out.dtype.element_ty), mask=inside)


def _wide(x: Tensor) -> tl.dtype:
    return tl.float64 if compute_dtype(x) is torch.float64 else tl.float32


def _history(op: str, channels: int, weight: Tensor, bias: Tensor | None, conv_state: Tensor) -> int:
    """Inputs that a state holds, once all agree on it."""
    history = sizes(op, "weight", weight, "D, K")[1] - 1
    require_shapes(
        op,
        weight=(weight, (channels, history + 1)),
        bias=(bias, (channels,)),
        conv_state=(conv_state, (*conv_state.shape[:1], channels, history)),
    )
    return history


def causal_conv1d_varlen(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    cu_seqlens: Tensor,
    conv_state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor,
    activation: str | None,
    metadata: ConvMetadata | None = None,  # noqa: ARG001 - of the torch backend
) -> Tensor:
    """See `staticfire.kernels.causal_conv1d.causal_conv1d_varlen`."""
    require_device(x)
    tokens, channels = sizes("causal_conv1d_varlen", "x", x, "T, D")
    sequences = len(state_indices)
    history = _history("causal_conv1d_varlen", channels, weight, bias, conv_state)
    require_shapes(
        "causal_conv1d_varlen",
        cu_seqlens=(cu_seqlens, (sequences + 1,)),
        state_indices=(state_indices, (sequences,)),
        has_initial_state=(has_initial_state, (sequences,)),
    )
    out = x.new_empty(tokens, channels)
    if out.numel():
        taps = triton.next_power_of_2(max(1, history))
        # A sequence's second program must not reach back to the state, which its first one writes.
        block = max(TOKENS, taps)
        width = min(CHANNELS, triton.next_power_of_2(channels))
        _causal_conv1d_varlen[tokens // block + sequences, triton.cdiv(channels, width)](
            x,
            weight,
            bias,
            cu_seqlens.contiguous(),
            conv_state,
            state_indices.contiguous(),
            has_initial_state.contiguous(),
            out,
            *x.stride(),
            *weight.stride(),
            0 if bias is None else bias.stride(0),
            *conv_state.stride(),
            sequences,
            channels,
            SILU=activation == "silu",
            HISTORY=history,
            WIDE=_wide(x),
            TOKENS=block,
            CHANNELS=width,
            TAPS=taps,
            num_warps=warps(block, width),
        )
    return out


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    state_indices: Tensor,
    activation: str | None,
    slots: Slots | None = None,  # noqa: ARG001 - of the torch backend
) -> Tensor:
    """See `staticfire.kernels.causal_conv1d.causal_conv1d_update`."""
    require_device(x)
    rows, channels = sizes("causal_conv1d_update", "x", x, "B, D")
    history = _history("causal_conv1d_update", channels, weight, bias, conv_state)
    require_shapes("causal_conv1d_update", state_indices=(state_indices, (rows,)))
    out = x.new_empty(rows, channels)
    if out.numel():
        width = min(STEP_CHANNELS, triton.next_power_of_2(channels))
        _causal_conv1d_update[rows, triton.cdiv(channels, width)](
            x,
            conv_state,
            weight,
            bias,
            state_indices.contiguous(),
            out,
            *x.stride(),
            *conv_state.stride(),
            *weight.stride(),
            0 if bias is None else bias.stride(0),
            channels,
            SILU=activation == "silu",
            HISTORY=history,
            WIDE=_wide(x),
            CHANNELS=width,
            num_warps=max(1, width // 128),
        )
    return out
