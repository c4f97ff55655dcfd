"""Other implementations of our ops, called as their own documentation says, if they are installed.

None of them is a dependency. Each is imported only when it is timed; what is installed but cannot be called so is
reported as such, never passed over.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from staticfire.kernels.bench.case import Rival


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> tuple[Rival, ...]:
    """Of flash-linear-attention and vLLM."""

    def fla() -> Callable[[], Tensor]:
        function = import_module("fla.modules.norm.layernorm").rms_norm
        return lambda: function(x, weight, None, eps=eps)

    def vllm() -> Callable[[], Tensor]:
        function, out = import_module("vllm._custom_ops").rms_norm, torch.empty_like(x)
        return lambda: _into(out, function, out, x, weight, eps)

    return Rival("fla", fla), Rival("vllm", vllm)


def silu_and_mul(x: Tensor) -> tuple[Rival, ...]:
    """Of vLLM."""

    def vllm() -> Callable[[], Tensor]:
        import_module("vllm._custom_ops")
        function, out = torch.ops._C.silu_and_mul, x.new_empty(*x.shape[:-1], x.shape[-1] // 2)  # noqa: SLF001
        return lambda: _into(out, function, out, x)

    return (Rival("vllm", vllm),)


def causal_conv1d_update(
    x: Tensor, conv_state: Tensor, weight: Tensor, bias: Tensor, state_indices: Tensor
) -> tuple[Rival, ...]:
    """Of causal-conv1d."""

    def dao() -> Callable[[], Tensor]:
        function = import_module("causal_conv1d").causal_conv1d_update
        state, slots = conv_state.clone(), state_indices.to(torch.int32)
        return lambda: function(x, state, weight.contiguous(), bias, "silu", conv_state_indices=slots)

    return (Rival("causal_conv1d", dao),)


def selective_state_update(
    ssm_state: Tensor, u: Tensor, A: Tensor, B: Tensor, D: Tensor, delta_bias: Tensor, state_indices: Tensor
) -> tuple[Rival, ...]:
    """Of mamba_ssm; time steps and gate are `u`, C is B, as in the case."""

    def mamba() -> Callable[[], Tensor]:
        function = import_module("mamba_ssm.ops.triton.selective_state_update").selective_state_update
        state, slots = ssm_state.clone(), state_indices.to(torch.int32)
        return lambda: function(
            state, u, u, A, B, B, D, z=u, dt_bias=delta_bias, dt_softplus=True, state_batch_indices=slots
        )

    return (Rival("mamba_ssm", mamba),)


def fused_moe(x: Tensor, w13: Tensor, w2: Tensor, weights: Tensor, ids: Tensor) -> tuple[Rival, ...]:
    """Of vLLM."""

    def vllm() -> Callable[[], Tensor]:
        function = import_module("vllm.model_executor.layers.fused_moe.fused_moe").fused_experts
        return lambda: function(x, w13, w2, weights, ids.to(torch.int32))

    return (Rival("vllm", vllm),)


def _into(out: Tensor, function: Callable[..., Any], *args: Any) -> Tensor:
    function(*args)
    return out
