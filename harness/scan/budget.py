"""What following foreign text may cost: one budget of steps and bytes, charged before the work is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

ELEMENT = 16
"""Bytes that one element of a list, one entry of a mapping, or one name that is copied counts."""
REASON = "too large to follow"
"""Why a value is not known that would cost more than the budget has."""


class TooLarge(Exception):  # noqa: N818 - a bound, not a fault
    """A value would cost more bytes than the budget allows."""


class Exhausted(Exception):  # noqa: N818 - an end, not a fault
    """The budget of steps is spent."""


@dataclass(slots=True)
class Budget:
    """What may still be spent on one file, or on one part of it.

    Bytes are counted as traffic: a value that is made counts when it is made, and again each time that it is walked
    through, so they bound both memory and the work that no step counts.

    Attributes:
        steps: Nodes of Python, words of shell, or nodes of YAML that may still be evaluated.
        memory: Bytes that may still be made or walked through.
        value: Bytes of one value.
    """

    steps: int
    memory: int
    value: int

    def step(self, count: int = 1) -> None:
        """Charge for work.

        Raises:
            Exhausted: There are no steps left.
        """
        self.steps -= count
        if self.steps < 0:
            raise Exhausted

    def make(self, size: int) -> None:
        """Charge for a value of some bytes, before it is made or walked through.

        Raises:
            TooLarge: It is too large, or nothing is left for it.
        """
        if size > self.value or size > self.memory:
            raise TooLarge
        self.memory -= size

    def elements(self, count: int) -> None:
        """Charge for some elements.

        Raises:
            TooLarge: They are too many.
        """
        self.make(count * ELEMENT)


_current = Budget(1 << 40, 1 << 40, 1_600_000)


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Charge a budget for the values that are made and walked through in the meantime."""
    global _current  # noqa: PLW0603 - evaluation is recursive, and values are walked through wherever they are met
    former, _current = _current, budget
    try:
        yield
    finally:
        _current = former


def current() -> Budget:
    """The budget that is being spent."""
    return _current


__all__ = ["ELEMENT", "REASON", "Budget", "Exhausted", "TooLarge", "current", "spending"]
