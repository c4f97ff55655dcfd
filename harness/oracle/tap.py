"""Hooks on the routers of a transformers model: read what they choose, or make them choose."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from staticfire.harness.oracle.base import Array, OracleError
from staticfire.harness.oracle.families import Family


class RouterTap:
    """While open, records every router's logits and choices, and replaces the choices where some are given.

    Forward passes may follow each other (a prefill, then steps): their rows are appended.

    Args:
        model: A transformers model.
        family: How its routers are found and read.
        forced: Experts [L, T, k] to choose instead; None leaves the choice to the routers. A router keeps its own
            order where the same experts are given in another.
    """

    def __init__(self, model: nn.Module, family: Family, forced: Array | None = None) -> None:
        self._routers = routers(model, family)
        self._renormalize = family.renormalize
        self._forced = None if forced is None else torch.from_numpy(np.ascontiguousarray(forced)).long()
        if forced is not None and len(forced) != len(self._routers):
            raise OracleError(f"routing for {len(forced)} MoE layers given, the model has {len(self._routers)}")
        self._logits: list[list[Tensor]] = [[] for _ in self._routers]
        self._chosen: list[list[Tensor]] = [[] for _ in self._routers]
        self._seen = [0] * len(self._routers)
        self._handles: list[Any] = []

    def __enter__(self) -> Self:
        """Hook every router."""
        self._handles = [router.register_forward_hook(self._hook(i)) for i, router in enumerate(self._routers)]
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        """Unhook."""
        for handle in self._handles:
            handle.remove()

    @property
    def logits(self) -> Array:
        """Router logits so far, [L, T, E] in at least float32."""
        return _stack(self._logits, np.float32)

    @property
    def chosen(self) -> Array:
        """Experts used so far, [L, T, k]."""
        return _stack(self._chosen, np.int16)

    def _hook(self, layer: int) -> Callable[[nn.Module, Any, tuple[Tensor, Tensor, Tensor]], Any]:
        def hook(module: nn.Module, args: Any, output: tuple[Tensor, Tensor, Tensor]) -> Any:  # noqa: ARG001 - torch's signature
            logits, weights, indices = output
            if self._forced is not None:
                given = self._forced[layer, self._seen[layer] : self._seen[layer] + len(indices)]
                weights, indices = self._choose(logits, weights, indices, given)
            self._seen[layer] += len(indices)
            wide = logits if logits.dtype == torch.float64 else logits.float()
            self._logits[layer].append(wide.detach().clone())
            self._chosen[layer].append(indices.detach().to(torch.int16))
            return logits, weights, indices

        return hook

    def _choose(self, logits: Tensor, weights: Tensor, indices: Tensor, given: Tensor) -> tuple[Tensor, Tensor]:
        if given.shape != indices.shape:
            raise OracleError(f"routing of shape {tuple(given.shape)} given, the router chose {tuple(indices.shape)}")
        differs = (given.sort(-1).values != indices.sort(-1).values).any(-1, keepdim=True)
        if not differs.any():
            return weights, indices
        wide = logits if logits.dtype == torch.float64 else logits.float()
        new = torch.softmax(wide, dim=-1).gather(-1, given)
        if self._renormalize:
            new = new / new.sum(-1, keepdim=True)
        return torch.where(differs, new.to(weights.dtype), weights), torch.where(differs, given, indices)


def routers(model: nn.Module, family: Family) -> list[nn.Module]:
    """The routers of a model in layer order."""
    if family.router is None:
        return []
    return [module for module in model.modules() if type(module).__name__ == family.router]


def _stack(layers: list[list[Tensor]], dtype: type) -> Array:
    if not layers or not layers[0]:
        return np.zeros((len(layers), 0, 0), dtype=dtype)
    return np.stack([torch.cat(rows).numpy() for rows in layers])
