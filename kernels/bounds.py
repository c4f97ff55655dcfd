"""Bounds of memory in Triton's interpreter, which reads and writes wherever a pointer points.

A lane that a mask should have switched off may read far outside its tensor and still leave every output right, because
what it read is not stored. On a GPU it faults, at times. Here each lane must hit an element of a tensor that was passed
to the launch: not the gap between two rows, and not what lies before or behind.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from triton.runtime import interpreter

_COLLECT = "_init_args_hst"
"""Method of Triton's `GridExecutor` that returns the arguments of a launch as they lie in the memory of the CPU."""


@contextmanager
def strict_bounds() -> Iterator[None]:
    """Fail every interpreted launch inside one of whose loads or stores leaves the tensors passed to it.

    Raises:
        triton.runtime.errors.InterpreterError: One did; the message says which address.
    """
    builder, executor = interpreter.interpreter_builder, interpreter.GridExecutor
    load, store, collect = builder.create_masked_load, builder.create_masked_store, getattr(executor, _COLLECT)
    legal = np.empty(0, np.uint64)

    def collected(self: Any, args: Any, kwargs: Any) -> Any:
        nonlocal legal
        found = collect(self, args, kwargs)
        tensors = [value for value in (*found[0], *found[1].values()) if isinstance(value, Tensor)]
        legal = np.unique(np.concatenate([_addresses(t) for t in tensors])) if tensors else np.empty(0, np.uint64)
        return found

    def check(what: str, pointers: Any, mask: Any) -> None:
        lanes = np.broadcast_to(mask.data, pointers.data.shape)
        wanted = pointers.data[lanes].astype(np.uint64)
        place = np.minimum(np.searchsorted(legal, wanted), max(len(legal) - 1, 0))
        outside = legal[place] != wanted if len(legal) else np.ones_like(wanted, dtype=bool)
        if outside.any():
            raise AssertionError(
                f"{what} of {int(outside.sum())} of {wanted.size} lanes outside every tensor of the launch, first at "
                f"{int(wanted[outside][0]):#x}"
            )

    def checked_load(pointers: Any, mask: Any, *rest: Any) -> Any:
        check("a load", pointers, mask)
        return load(pointers, mask, *rest)

    def checked_store(pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        check("a store", pointers, mask)
        return store(pointers, value, mask, *rest)

    builder.create_masked_load, builder.create_masked_store = checked_load, checked_store
    setattr(executor, _COLLECT, collected)
    try:
        yield
    finally:
        del builder.create_masked_load, builder.create_masked_store
        setattr(executor, _COLLECT, collect)


def _addresses(tensor: Tensor) -> np.ndarray:
    """Where each element of a tensor begins."""
    offsets = torch.zeros((), dtype=torch.int64)
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        offsets = offsets.unsqueeze(-1) + torch.arange(length) * stride
    return (tensor.data_ptr() + offsets.reshape(-1).numpy() * tensor.element_size()).astype(np.uint64)
