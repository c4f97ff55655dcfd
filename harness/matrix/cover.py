"""A covering array under constraints, greedily: each row takes up as many uncovered combinations as it can.

Knows indices only. Deterministic for a seed; proven complete for each array by `verify`, which shares no code with it.
"""

import random
from collections.abc import Iterable, Sequence
from itertools import product

from staticfire.harness.matrix.solve import Partial, Space

Interaction = tuple[int, ...]
CANDIDATES = 4
"""Rows tried for each row kept; more make the array slightly smaller and the wait longer."""


def cover(
    space: Space,
    interactions: Iterable[Interaction],
    seeds: Sequence[Partial],
    seed: int,
    rest: Partial | None = None,
) -> list[Partial]:
    """Find rows that hold every feasible combination of values on each interaction.

    Args:
        space: Domains and clauses.
        interactions: Tuples of axes, ascending, whose combinations of values must all appear.
        seeds: Partial rows that must appear in the array first; each must be feasible.
        seed: Decides among equally good rows.
        rest: Values that their axes have wherever another gains nothing.

    Returns:
        Whole rows, seeds first, none of them redundant but for the seeds.
    """
    rest = rest or {}
    rng = random.Random(seed)  # noqa: S311 -- a reproducible choice, not a secret
    todo = _Todo(space, interactions)
    rows: list[Partial] = []
    for partial in seeds:
        rows.append(_grow(space, todo, partial, rng, rest))
        todo.take(rows[-1])
    while start := todo.first():
        candidates = [_grow(space, todo, start, rng, rest) for _ in range(CANDIDATES)]
        rows.append(max(candidates, key=todo.gain))
        todo.take(rows[-1])
    return rows


class _Todo:
    """Combinations that no row holds yet."""

    def __init__(self, space: Space, interactions: Iterable[Interaction]) -> None:
        self.left: dict[Interaction, dict[tuple[int, ...], None]] = {}
        for axes in _widest(interactions):
            combinations = product(*(space.domains[axis] for axis in axes))
            self.left[axes] = {c: None for c in combinations if space.feasible(dict(zip(axes, c, strict=True)))}
        self.by_axis: list[list[Interaction]] = [
            [axes for axes in self.left if axis in axes] for axis in range(len(space.domains))
        ]

    def first(self) -> Partial | None:
        """One uncovered combination, from the interaction that has most of them; None when all are covered."""
        axes = max(self.left, key=lambda axes: len(self.left[axes]), default=None)
        if axes is None or not self.left[axes]:
            return None
        return dict(zip(axes, next(iter(self.left[axes])), strict=True))

    def gain(self, row: Partial) -> int:
        """How many uncovered combinations a row holds."""
        return sum(tuple(row[axis] for axis in axes) in left for axes, left in self.left.items())

    def gains(self, row: Partial, axis: int, values: Iterable[int]) -> dict[int, int]:
        """How many of those a partial row would hold that involve one axis more, for each value there."""
        known = row.keys() | {axis}
        live = [(axes, self.left[axes]) for axes in self.by_axis[axis] if self.left[axes] and known.issuperset(axes)]
        found = {}
        for value in values:
            trial = {**row, axis: value}
            found[value] = sum([tuple([trial[other] for other in axes]) in left for axes, left in live])
        return found

    def take(self, row: Partial) -> None:
        """Cross off what a row holds."""
        for axes, left in self.left.items():
            left.pop(tuple(row[axis] for axis in axes), None)


def _widest(interactions: Iterable[Interaction]) -> list[Interaction]:
    """Drop interactions inside wider ones: every feasible combination is part of a feasible wider one."""
    distinct = sorted(set(interactions))
    return [axes for axes in distinct if not any(set(axes) < set(other) for other in distinct)]


def _grow(space: Space, todo: _Todo, start: Partial, rng: random.Random, rest: Partial) -> Partial:
    """Extend a feasible partial row axis by axis, in random order, each time by the value that gains most.

    Axes that have a value to rest at come last, when the others have decided what there is to gain.
    """
    row = dict(start)
    axes = [axis for axis in range(len(space.domains)) if axis not in row]
    rng.shuffle(axes)
    axes.sort(key=lambda axis: axis in rest)
    for axis in axes:
        values = list(space.domains[axis])
        rng.shuffle(values)
        gains = todo.gains(row, axis, values)
        for value in sorted(values, key=lambda value: (-gains[value], value != rest.get(axis, value))):
            row[axis] = value
            if space.still_feasible(row, axis):
                break
        # A feasible row has a feasible value on every axis, so the loop always breaks.
    return row
