"""One line of the table."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from staticfire.kernels.variant import Cost


class Rival(NamedTuple):
    """Another implementation of the op.

    Attributes:
        name: Of the distribution.
        make: Imports it and returns a call on the case's inputs that gives its first output.
    """

    name: str
    make: Callable[[], Callable[[], Tensor]]


def _nothing() -> None:
    return


class Case(NamedTuple):
    """One line of the table.

    Attributes:
        op: Name of the public function.
        shape: What it is called on, in words.
        cost: What it cannot do without.
        call: Runs it once on the given backend and returns its first output.
        reset: Puts a state that calls change back to its start, for the comparison; its time is not counted.
        rivals: Other implementations.
    """

    op: str
    shape: str
    cost: Cost
    call: Callable[[Any], Tensor]
    reset: Callable[[], object] = _nothing
    rivals: Sequence[Rival] = ()
