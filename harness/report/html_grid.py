"""Factor x factor grids: for each pair of axes, how many cells of each combination are as they should be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from staticfire.harness.matrix.cell import UNSET
from staticfire.harness.report.text import clean
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import GOOD, CellResult

MAX_ENTRIES = 3_000
"""Entries of all grids together; further pairs of axes are left out, and the page says so."""


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


def axis_value(result: CellResult, axis: str) -> str:
    """The cell's value on an axis, as typed."""
    value = result.axes.get(axis, UNSET)
    return clean(str(value).lower() if isinstance(value, bool) else str(value))


def axes_of(record: RunRecord) -> list[Axis]:
    """Every axis of the run with its values."""
    return [Axis(name, list(dict.fromkeys(axis_value(r, name) for r in record.results))) for name in record.axes]


def grids_of(record: RunRecord, axes: Sequence[Axis]) -> tuple[list[Grid], int]:
    """Return the grids of all pairs of axes that vary, those with findings first, and how many were left out."""
    varying = [(index, axis) for index, axis in enumerate(axes) if len(axis.values) > 1]
    pairs = list(combinations(varying, 2))
    grids: list[Grid] = []
    entries = 0
    for (down_index, down), (across_index, across) in pairs:
        entries += len(down.values) * len(across.values)
        if entries > MAX_ENTRIES:
            break
        grids.append(Grid(down, across, down_index, across_index, _rows(record, down, across)))
    grids.sort(key=_concentration, reverse=True)
    return grids, len(pairs) - len(grids)


def _rows(record: RunRecord, down: Axis, across: Axis) -> list[list[Entry]]:
    counts: Mapping[str, dict[str, list[int]]] = {value: {} for value in down.values}
    for result in record.results:
        entry = counts[axis_value(result, down.name)].setdefault(axis_value(result, across.name), [0, 0])
        entry[0] += 1
        entry[1] += result.verdict not in GOOD
    return [[Entry(*counts[a].get(b, (0, 0))) for b in across.values] for a in down.values]


def _concentration(grid: Grid) -> float:
    """How well the pair explains the findings: the share of cells that are bad where any is bad."""
    hit = [entry for row in grid.rows for entry in row if entry.bad]
    cells = sum(entry.cells for entry in hit)
    return sum(entry.bad for entry in hit) / cells if cells else 0.0
