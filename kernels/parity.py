"""What a parity test demands of a Triton kernel beyond right numbers.

Outputs are allocated full of NaN. A launch is repeated and must give the same bits; where its programs are
independent it is repeated with the programs in another order, which finds a program that relies on what another
wrote. Canaries around inputs and states are in `testing.py`.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from triton.runtime import interpreter

from staticfire.kernels.bounds import strict_bounds
from staticfire.kernels.offsets import strict_offsets
from staticfire.kernels.testing import bits_equal

_POISON: Any = torch.utils.deterministic


@contextmanager
def shuffled_programs(seed: int) -> Iterator[None]:
    """Run the programs of every interpreted launch inside in a random order, each still once.

    Args:
        seed: Of the order.
    """
    builder = interpreter.interpreter_builder
    place = builder.set_grid_idx
    orders: dict[tuple[int, ...], list[tuple[int, int, int]]] = {}

    def shuffled(x: int, y: int, z: int) -> None:
        dims = tuple(int(n) for n in builder.grid_dim)
        if dims not in orders:
            every = [(i, j, k) for i in range(dims[0]) for j in range(dims[1]) for k in range(dims[2])]
            random.Random(seed).shuffle(every)  # noqa: S311 - an order, no secret
            orders[dims] = every
        place(*orders[dims][(x * dims[1] + y) * dims[2] + z])

    builder.set_grid_idx = shuffled
    try:
        yield
    finally:
        builder.set_grid_idx = place


@contextmanager
def poisoned_allocations() -> Iterator[None]:
    """Fill what `torch.empty` and its kin return with NaN, or the largest integer, so that a gap in an output shows."""
    before = torch.are_deterministic_algorithms_enabled(), _POISON.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    _POISON.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0])
        _POISON.fill_uninitialized_memory = before[1]


def assert_repeatable(run: Callable[[], Sequence[Tensor]], *, seed: int = 0, shuffle: bool = True) -> Sequence[Tensor]:
    """Run three times: as it is, again, and with shuffled programs. All bits must be equal, and no lane out of bounds.

    Offsets must have 64 bits, see `strict_offsets`.

    Args:
        run: Makes its own fresh inputs (states that are changed in place included), launches, and returns everything
            that the kernel wrote.
        seed: Of the order.
        shuffle: False for a kernel whose programs are meant to depend on one another.

    Returns:
        What the first run returned.

    Raises:
        AssertionError: Two runs differ.
    """
    with poisoned_allocations(), strict_bounds(), strict_offsets():
        first, again = run(), run()
        _assert_same("a second run", first, again)
        if shuffle:
            with shuffled_programs(seed):
                _assert_same("a run with its programs in another order", first, run())
    return first


def _assert_same(what: str, first: Sequence[Tensor], second: Sequence[Tensor]) -> None:
    for number, (a, b) in enumerate(zip(first, second, strict=True)):
        if not bits_equal(a, b):
            changed = torch.nonzero(a != b)
            where: Any = changed[0].tolist() if len(changed) else "NaN or sign of zero"
            raise AssertionError(f"{what} gave other bits in output {number}, first at {where}")
