"""Which cells of a matrix to run: by id, by axis values, or both."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.errors import RunUsageError


class Selectable(Protocol):
    """What is needed of a matrix."""

    def cells(self) -> tuple[Cell, ...]:
        """Every cell."""

    def select(self, conditions: Sequence[tuple[str, str]]) -> tuple[Cell, ...]:
        """Cells that meet every `(axis, value)`; values of one axis are alternatives."""


def select(matrix: Selectable, ids: Iterable[str], filters: Iterable[str]) -> tuple[Cell, ...]:
    """Return the chosen cells in the matrix's order.

    Args:
        matrix: Chosen from.
        ids: Ids to keep; none keeps all.
        filters: `axis=value`; values of one axis are alternatives, different axes must all match.

    Raises:
        RunUsageError: An unknown id, axis or value (with the nearest known one), or no cell is left.
    """
    everything, wanted, filters = matrix.cells(), list(dict.fromkeys(ids)), list(filters)
    known = {cell.id for cell in everything}
    faults = [f"--cell {name}: no such cell.{nearest(name, known)}" for name in wanted if name not in known]
    conditions = [condition for entry in filters if (condition := _condition(entry, faults))]
    kept = everything
    try:
        kept = matrix.select(conditions) if conditions else everything
    except InputError as error:
        faults.append(f"--select: {error}")
    if faults:
        raise RunUsageError("\n".join(faults))
    chosen = tuple(cell for cell in kept if not wanted or cell.id in wanted)
    if not chosen:
        asked = " ".join([*(f"--cell {name}" for name in wanted), *(f"--select {entry}" for entry in filters)])
        raise RunUsageError(f"no cell of the {len(everything)} in the matrix is left by {asked or 'an empty matrix'}")
    return chosen


def _condition(entry: str, faults: list[str]) -> tuple[str, str] | None:
    axis, _, value = entry.partition("=")
    if axis and value:
        return axis.strip(), value.strip()
    faults.append(f"--select {entry}: must be axis=value, such as block_size=32")
    return None
