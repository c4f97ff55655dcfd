"""Causal depthwise convolution over packed sequences without padding, and its one-token step."""

import torch
from torch import Tensor
from torch.nn.functional import silu

from staticfire.kernels.causal_conv1d.metadata import ConvMetadata, make_metadata
from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.shapes import require_rows
from staticfire.kernels.slots import Slots, make_slots


def causal_conv1d_varlen(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    cu_seqlens: Tensor,
    conv_state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor,
    activation: str | None,
    metadata: ConvMetadata | None = None,
) -> Tensor:
    """See `staticfire.kernels.causal_conv1d.causal_conv1d_varlen`."""
    width = weight.shape[1]
    require_rows("causal_conv1d_varlen", "x", x, cu_seqlens)
    if metadata is None:
        metadata = make_metadata(cu_seqlens, state_indices, has_initial_state, width)
    if metadata.source.numel() == 0:
        return torch.zeros_like(x)
    dtype, wide = x.dtype, compute_dtype(x)
    pool = conv_state.transpose(1, 2)
    table = [x, x.new_zeros(1, x.shape[1])]
    if metadata.read.numel():
        table.insert(1, pool.index_select(0, metadata.read).flatten(0, 1))
    extended = torch.cat(table).index_select(0, metadata.source)
    if metadata.final.numel():
        final = extended.index_select(0, metadata.final).view(-1, width - 1, x.shape[1])
        pool.index_copy_(0, metadata.write, final.to(pool.dtype))
    if extended.dtype is not wide:
        extended = extended.to(wide)
    windows = extended.shape[0] - width + 1
    taps = weight.t().to(wide).contiguous().unbind(0)
    out = extended[:windows] * taps[0]
    for k in range(1, width):
        out.addcmul_(extended[k : k + windows], taps[k])
    out = out.index_select(0, metadata.rows)
    if bias is not None:
        out.add_(bias)
    if activation == "silu":
        out = silu(out, inplace=True)
    if metadata.dead is not None:
        out.index_fill_(0, metadata.dead, 0)
    return out if dtype is wide else out.to(dtype)


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    state_indices: Tensor,
    activation: str | None,
    slots: Slots | None = None,
) -> Tensor:
    """See `staticfire.kernels.causal_conv1d.causal_conv1d_update`."""
    if slots is None:
        slots = make_slots(state_indices)
    if slots.rows is None:
        return _update(x, conv_state, weight, bias, slots.indices, activation)
    out = torch.zeros_like(x)
    if slots.rows.numel():
        some = _update(x.index_select(0, slots.rows), conv_state, weight, bias, slots.indices, activation)
        out.index_copy_(0, slots.rows, some)
    return out


def _update(
    x: Tensor, conv_state: Tensor, weight: Tensor, bias: Tensor | None, indices: Tensor, activation: str | None
) -> Tensor:
    dtype, wide = x.dtype, compute_dtype(x)
    # With the channel last every call runs over contiguous rows; free if the pool itself is laid out so.
    pool = conv_state.transpose(1, 2)
    window = torch.cat((pool.index_select(0, indices), x.unsqueeze(1)), 1)
    new = window[:, 1:]
    pool.index_copy_(0, indices, new if window.dtype is pool.dtype else new.to(pool.dtype))
    taps = weight.t()
    if window.dtype is not wide:
        window, taps = window.to(wide), taps.to(wide)
    out = (window * taps).sum(1)
    if bias is not None:
        out.add_(bias)
    if activation == "silu":
        out = silu(out, inplace=True)
    return out if dtype is wide else out.to(dtype)
