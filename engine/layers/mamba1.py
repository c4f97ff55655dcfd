"""Mamba-1 mixer: causal convolution and selective scan (Gu and Dao 2023), with Jamba's norms on dt, B and C."""

from typing import NamedTuple

import torch

from staticfire.engine.layers.batch import ForwardBatch, RecurrentBatch
from staticfire.engine.layers.linear import Linear
from staticfire.kernels.causal_conv1d import causal_conv1d_update, causal_conv1d_varlen
from staticfire.kernels.rms_norm import rms_norm_parts
from staticfire.kernels.selective_scan import selective_scan_varlen, selective_state_update


class Mamba1Weights(NamedTuple):
    """Weights of one mixer; D = intermediate size, N = state size, K = convolution width, R = rank of dt.

    Attributes:
        in_proj: hidden -> 2 D: signal, then gate.
        conv: [D, K].
        conv_bias: [D] or None.
        x_proj: D -> R + 2 N: dt, B, C.
        norm: [R + 2 N]: weights of the norms of dt, B and C.
        dt_proj: R -> D, without its bias.
        dt_bias: [D], at least float32.
        a: [D, N] = -exp(A_log), at least float32.
        d: [D], at least float32.
        out_proj: D -> hidden.
    """

    in_proj: Linear
    conv: torch.Tensor
    conv_bias: torch.Tensor | None
    x_proj: Linear
    norm: torch.Tensor
    dt_proj: Linear
    dt_bias: torch.Tensor
    a: torch.Tensor
    d: torch.Tensor
    out_proj: Linear


class Mamba1Mixer:
    """A recurrent layer with a convolution state [D, K - 1] and a scan state [D, N] a sequence."""

    def __init__(self, weights: Mamba1Weights, eps: float) -> None:
        """Hold the weights; `eps` is that of the three norms."""
        self.w = weights
        self.eps = eps
        state = weights.a.shape[1]
        rank = weights.norm.shape[0] - 2 * state
        self.split = (rank, state, state)
        self.group = -1
        self.conv_state = torch.empty(0)
        self.ssm_state = torch.empty(0)

    def bind(self, group: int, conv_state: torch.Tensor, ssm_state: torch.Tensor) -> None:
        """Say where the states are kept: [blocks, D, K - 1] and [blocks, D, N]."""
        self.group = group
        self.conv_state = conv_state
        self.ssm_state = ssm_state

    def __call__(self, x: torch.Tensor, batch: ForwardBatch) -> torch.Tensor:
        """[tokens, hidden] -> [tokens, hidden]; reads and writes the states of the batch's sequences."""
        where = batch.groups[self.group]
        assert isinstance(where, RecurrentBatch)
        w = self.w
        signal, gate = w.in_proj(x).chunk(2, dim=1)
        if batch.one_token_each:
            signal = causal_conv1d_update(
                signal,
                self.conv_state,
                w.conv,
                w.conv_bias,
                where.state_indices,
                "silu",
                slots=where.slots,
                backend=batch.backend,
            )
        else:
            signal = causal_conv1d_varlen(
                signal,
                w.conv,
                w.conv_bias,
                batch.cu_seqlens,
                self.conv_state,
                where.state_indices,
                where.has_initial_state,
                "silu",
                metadata=where.conv,
                backend=batch.backend,
            )
        normed = rms_norm_parts(w.x_proj(signal), w.norm, self.eps, self.split, backend=batch.backend)
        dt, b, c = normed.split_with_sizes(self.split, dim=1)
        mixed = self._scan(signal, w.dt_proj(dt), b, c, gate, batch, where)
        return w.out_proj(mixed)

    def _scan(
        self,
        signal: torch.Tensor,
        delta: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        gate: torch.Tensor,
        batch: ForwardBatch,
        where: RecurrentBatch,
    ) -> torch.Tensor:
        w = self.w
        if batch.one_token_each:
            return selective_state_update(
                self.ssm_state,
                signal,
                delta,
                w.a,
                b,
                c,
                w.d,
                gate,
                w.dt_bias,
                True,
                where.state_indices,
                slots=where.slots,
                backend=batch.backend,
            )
        return selective_scan_varlen(
            signal,
            delta,
            w.a,
            b,
            c,
            w.d,
            gate,
            w.dt_bias,
            True,
            batch.cu_seqlens,
            self.ssm_state,
            where.state_indices,
            where.has_initial_state,
            metadata=where.scan,
            backend=batch.backend,
        )
