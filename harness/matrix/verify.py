"""Check a covering array by brute force. Shares no code with the generator: a fault in one cannot hide in the other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Any

from staticfire.harness.matrix.document import Constraint, Document

Key = tuple[type, Any]
Combination = tuple[tuple[str, Key], ...]
LIMIT = 2_000_000
"""Rows of the product of the constrained axes that are still enumerated."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an array covers.

    Attributes:
        by_strength: Axes in a combination (2 for pairs) -> how many combinations some valid row holds, and how many
            of those a row of the array holds.
        missing: Feasible combinations that no row holds; empty for a correct array.
        infeasible: Combinations that no valid row holds, each with the constraints that rule it out by themselves
            (none named where only several together do).
        invalid: Rows of the array that a constraint excludes; empty for a correct array.
    """

    by_strength: Mapping[int, tuple[int, int]]
    missing: tuple[Combination, ...]
    infeasible: tuple[tuple[Combination, tuple[Constraint, ...]], ...]
    invalid: tuple[Mapping[str, Any], ...]

    @property
    def complete(self) -> bool:
        """Whether every feasible combination is covered by valid rows alone."""
        return not self.missing and not self.invalid


def verify(document: Document, rows: Sequence[Mapping[str, Any]]) -> Coverage:
    """Enumerate what a matrix allows, and compare.

    Args:
        document: The matrix.
        rows: Axis -> value of each valid cell.

    Returns:
        The coverage over all axes at the matrix's strength and over each submodel at its own.

    Raises:
        OverflowError: The constrained axes have more than two million combinations.
    """
    axes = {name: [_key(value) for value in values] for name, values in document.axes.items()}
    bans = [{name: {_key(v) for v in values} for name, values in c.when.items()} for c in document.constraints]
    tied = [name for name in axes if any(name in ban for ban in bans)]
    if prod(len(axes[name]) for name in tied) > LIMIT:
        raise OverflowError(f"the constrained axes {', '.join(tied)} have more than {LIMIT} combinations")
    allowed = [
        row
        for values in product(*(axes[name] for name in tied))
        if not _banned(row := dict(zip(tied, values, strict=True)), bans)
    ]
    keyed = [{name: _key(value) for name, value in row.items()} for row in rows]
    missing: list[Combination] = []
    infeasible: list[tuple[Combination, tuple[Constraint, ...]]] = []
    counts: dict[int, tuple[int, int]] = {}
    for names in _interactions(document):
        possible = _possible(names, axes, tied, allowed)
        present = {tuple(row[name] for name in names) for row in keyed}
        feasible, covered = counts.get(len(names), (0, 0))
        counts[len(names)] = feasible + len(possible), covered + len(possible & present)
        for values in product(*(axes[name] for name in names)):
            combination = tuple(zip(names, values, strict=True))
            if values not in possible:
                infeasible.append((combination, _culprits(dict(combination), document.constraints, bans)))
            elif values not in present:
                missing.append(combination)
    invalid = tuple(row for row, keys in zip(rows, keyed, strict=True) if _banned(keys, bans))
    return Coverage(counts, tuple(missing), tuple(infeasible), invalid)


def _key(value: object) -> Key:
    return type(value), value


def _banned(row: Mapping[str, Key], bans: Iterable[Mapping[str, set[Key]]]) -> bool:
    return any(all(row[name] in values for name, values in ban.items()) for ban in bans)


def _interactions(document: Document) -> list[tuple[str, ...]]:
    """Every set of axes whose combinations must meet, once."""
    wanted = {tuple(sorted(names)) for names in combinations(document.axes, min(document.strength, len(document.axes)))}
    for submodel in document.submodels:
        wanted |= {tuple(sorted(names)) for names in combinations(submodel.axes, submodel.strength)}
    return sorted(wanted)


def _possible(
    names: tuple[str, ...],
    axes: Mapping[str, list[Key]],
    tied: Sequence[str],
    allowed: Sequence[Mapping[str, Key]],
) -> set[tuple[Key, ...]]:
    """Combinations on some axes that extend to an allowed row; axes outside every constraint are free."""
    bound = [name for name in names if name in tied]
    seen = {tuple(row[name] for name in bound) for row in allowed}
    free = [name for name in names if name not in tied]
    found = set()
    for some in seen:
        for rest in product(*(axes[name] for name in free)):
            value = dict(zip([*bound, *free], [*some, *rest], strict=True))
            found.add(tuple(value[name] for name in names))
    return found


def _culprits(
    combination: Mapping[str, Key], constraints: Sequence[Constraint], bans: Sequence[Mapping[str, set[Key]]]
) -> tuple[Constraint, ...]:
    return tuple(
        constraint
        for constraint, ban in zip(constraints, bans, strict=True)
        if all(name in combination and combination[name] in values for name, values in ban.items())
    )
