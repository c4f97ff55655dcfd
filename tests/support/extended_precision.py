"""Recurrences in extended precision, an oracle for float64."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def long_double_scan(arguments: Mapping[str, Any], h: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """The selective scan over one sequence, written anew from the paper (https://arxiv.org/abs/2312.00752).

    Args:
        arguments: `u`, `delta`, `z` (tokens, channels), `A` (channels, states), `B`, `C` (tokens, states), `D`,
            `delta_bias` (channels,); softplus is applied.
        h: State before the first token (channels, states).

    Returns:
        Outputs (tokens, channels), and the state after the last token.
    """
    a = {k: v.numpy().astype(np.longdouble) if isinstance(v, torch.Tensor) else v for k, v in arguments.items()}
    state, out = h.numpy().astype(np.longdouble), []
    for t in range(len(a["u"])):
        dt = np.log1p(np.exp(a["delta"][t] + a["delta_bias"]))
        state = np.exp(np.outer(dt, np.ones(state.shape[1])) * a["A"]) * state + np.outer(dt * a["u"][t], a["B"][t])
        gate = a["z"][t] / (1 + np.exp(-a["z"][t]))
        out.append((state @ a["C"][t] + a["D"] * a["u"][t]) * gate)
    return np.array(out), state
