"""Factor x factor grids: for each pair of axes, how many cells of each combination are as they should be."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, compress

from staticfire.harness.matrix.cell import UNSET
from staticfire.harness.matrix.spelling import spelled
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import GOOD

MAX_ENTRIES = 3_000
"""Entries of all grids together; pairs of axes beyond are left out, and the page says so."""


@dataclass(frozen=True)
class Axis:
    """An axis and the values it takes in this run, in order of appearance."""

    name: str
    values: Sequence[str]


@dataclass(frozen=True)
class Entry:
    """One combination: how many cells, and how many of them are findings."""

    cells: int
    bad: int


@dataclass(frozen=True)
class Grid:
    """One pair of axes; `rows[i][j]` is the combination of `down.values[i]` and `across.values[j]`."""

    down: Axis
    across: Axis
    down_index: int
    across_index: int
    rows: Sequence[Sequence[Entry]]


@dataclass(frozen=True)
class Factors:
    """The axes of a run, and for each result the place of its value on each axis."""

    axes: Sequence[Axis]
    places: Sequence[Sequence[int]]

    def values(self, result: int) -> list[str]:
        """The values of the result at this index."""
        return [axis.values[place] for axis, place in zip(self.axes, self.places[result], strict=True)]


def factors_of(record: RunRecord) -> Factors:
    """Every axis of the run with its values, as typed."""
    seen: list[dict[str, int]] = [{} for _ in record.axes]
    places = [
        [
            known.setdefault(spelled(result.axes.get(axis, UNSET)), len(known))
            for known, axis in zip(seen, record.axes, strict=True)
        ]
        for result in record.results
    ]
    return Factors([Axis(name, list(known)) for name, known in zip(record.axes, seen, strict=True)], places)


def grids_of(record: RunRecord, factors: Factors) -> tuple[list[Grid], int]:
    """Return the grids of all pairs of axes that vary, those with findings first, and how many were left out."""
    varying = [(index, axis) for index, axis in enumerate(factors.axes) if len(axis.values) > 1]
    bad = [result.verdict not in GOOD for result in record.results]
    pairs = list(combinations(varying, 2))
    grids: list[Grid] = []
    entries = 0
    for (down_index, down), (across_index, across) in pairs:
        size = len(down.values) * len(across.values)
        if entries + size > MAX_ENTRIES:
            continue
        entries += size
        where = [(places[down_index], places[across_index]) for places in factors.places]
        cells, findings = Counter(where), Counter(compress(where, bad))
        rows = [
            [Entry(cells[i, j], findings[i, j]) for j in range(len(across.values))] for i in range(len(down.values))
        ]
        grids.append(Grid(down, across, down_index, across_index, rows))
    grids.sort(key=_concentration, reverse=True)
    return grids, len(pairs) - len(grids)


def _concentration(grid: Grid) -> float:
    """How well the pair explains the findings: the share of cells that are bad where any is bad."""
    hit = [entry for row in grid.rows for entry in row if entry.bad]
    cells = sum(entry.cells for entry in hit)
    return sum(entry.bad for entry in hit) / cells if cells else 0.0
