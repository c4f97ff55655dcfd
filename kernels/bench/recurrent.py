"""Cases of the convolution and the scan."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from staticfire.kernels import causal_conv1d, selective_scan, slots
from staticfire.kernels.bench import rivals
from staticfire.kernels.bench.case import Case
from staticfire.kernels.bench.scale import Scale
from staticfire.kernels.causal_conv1d import cost as conv_cost
from staticfire.kernels.selective_scan import cost as scan_cost

SLOTS = 40


def _pool(scale: Scale, inner: int, dtype: torch.dtype) -> Tensor:
    """States [N, D, n] with channels last in memory, as the engine keeps them."""
    count = max(SLOTS, scale.sequences)
    return torch.randn(count, inner, scale.inner, device=scale.device, dtype=dtype).transpose(1, 2)


def cases(scale: Scale) -> list[Case]:
    """Make them."""
    randn = partial(torch.randn, device=scale.device, dtype=scale.dtype)
    wide = partial(torch.randn, device=scale.device)
    tokens, prompts = scale.prompt_tokens, len(scale.prompts)
    cu = torch.tensor([0, *scale.prompts], device=scale.device).cumsum(0)
    x, small = randn(tokens, scale.inner), randn(tokens, scale.states)
    conv, ssm = _pool(scale, scale.width - 1, scale.dtype), _pool(scale, scale.states, torch.float32)
    weight, bias = randn(scale.width, scale.inner).t(), randn(scale.inner)
    skip, delta_bias = wide(scale.inner), wide(scale.inner)
    decay = -torch.rand(scale.states, scale.inner, device=scale.device).t()
    index, one = torch.arange(prompts, device=scale.device), torch.arange(scale.sequences, device=scale.device)
    fresh = torch.zeros(prompts, dtype=torch.bool, device=scale.device)
    known = slots.make_slots(one)
    conv_meta = causal_conv1d.make_metadata(cu, index, fresh, scale.width)
    scan_meta = selective_scan.make_metadata(cu, index, fresh)
    u, b = x[: scale.sequences], small[: scale.sequences]
    first_ssm, first_conv = ssm.clone(), conv.clone()

    def update(backend: Any) -> Tensor:
        return selective_scan.selective_state_update(
            ssm, u, u, decay, b, b, skip, u, delta_bias, True, one, slots=known, backend=backend
        )

    def roll(backend: Any) -> Tensor:
        return causal_conv1d.causal_conv1d_update(u, conv, weight, bias, one, "silu", slots=known, backend=backend)

    def convolve(backend: Any) -> Tensor:
        return causal_conv1d.causal_conv1d_varlen(
            x, weight, bias, cu, conv, index, fresh, "silu", metadata=conv_meta, backend=backend
        )

    def scan(backend: Any) -> Tensor:
        return selective_scan.selective_scan_varlen(
            x,
            x,
            decay,
            small,
            small,
            skip,
            x,
            delta_bias,
            True,
            cu,
            ssm,
            index,
            fresh,
            metadata=scan_meta,
            backend=backend,
        )

    step = f"{scale.sequences} tokens x {scale.inner}"
    whole = f"{tokens} tokens of {prompts} prompts"
    conv_sizes: dict[str, Any] = {"channels": scale.inner, "width": scale.width, "dtype": scale.name}
    conv_sizes["state_dtype"] = scale.name
    scan_sizes: dict[str, Any] = {"channels": scale.inner, "states": scale.states, "dtype": scale.name}
    return [
        Case(
            "causal_conv1d_update",
            step,
            conv_cost.causal_conv1d_update(sequences=scale.sequences, **conv_sizes),
            roll,
            lambda: conv.copy_(first_conv),
            rivals.causal_conv1d_update(u, first_conv, weight, bias, one),
        ),
        Case(
            "selective_state_update",
            f"{step} x {scale.states}",
            scan_cost.selective_state_update(sequences=scale.sequences, **scan_sizes),
            update,
            lambda: ssm.copy_(first_ssm),
            rivals.selective_state_update(first_ssm, u, decay, b, skip, delta_bias, one),
        ),
        Case(
            "causal_conv1d_varlen",
            whole,
            conv_cost.causal_conv1d_varlen(tokens=tokens, sequences=prompts, **conv_sizes),
            convolve,
        ),
        Case(
            "selective_scan_varlen",
            whole,
            scan_cost.selective_scan_varlen(tokens=tokens, sequences=prompts, **scan_sizes),
            scan,
        ),
    ]
