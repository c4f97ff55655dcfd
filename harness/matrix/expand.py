"""From a checked matrix to its cells: valid ones that cover it, and refused ones for every rule it names.

Axes and values are put into a canonical order first, so that reordering the file changes no cell.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.matrix.cover import cover
from staticfire.harness.matrix.document import Constraint, Document, Row, Value, canonical, same
from staticfire.harness.matrix.ids import cell_id
from staticfire.harness.matrix.solve import Clause, Partial, Space


class Indexed:
    """A document in indices, in canonical order."""

    def __init__(self, document: Document) -> None:
        """Sort the axes by name and the values by type and size."""
        self.document = document
        self.names = sorted(document.axes)
        self.values = [sorted(document.axes[name], key=canonical) for name in self.names]

    def space(self, forbidden: Iterable[Constraint], required: Constraint | None = None) -> Space:
        """The rows that none of `forbidden` hits, and that `required` does."""
        domains = [list(range(len(values))) for values in self.values]
        if required is not None:
            for axis, kept in self._clause(required).items():
                domains[axis] = sorted(kept)
        return Space(domains, [self._clause(constraint) for constraint in forbidden])

    def partial(self, row: Row) -> Partial:
        """A row of values as a row of indices."""
        return {self.names.index(name): self._index(name, value) for name, value in row.items()}

    def row(self, indices: Partial) -> dict[str, Value]:
        """A whole row of indices as values, in the order of the file."""
        found = {name: self.values[axis][indices[axis]] for axis, name in enumerate(self.names)}
        return {name: found[name] for name in self.document.axes}

    def axes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Indices of some axes, ascending."""
        return tuple(sorted(self.names.index(name) for name in names))

    def _clause(self, constraint: Constraint) -> Clause:
        return {
            self.names.index(name): frozenset(self._index(name, value) for value in values)
            for name, values in constraint.when.items()
        }

    def _index(self, name: str, value: Value) -> int:
        values = self.values[self.names.index(name)]
        return next(i for i, known in enumerate(values) if same(known, value))


def valid_rows(document: Document) -> list[dict[str, Value]]:
    """Rows without a fault that hold every feasible combination that the matrix asks for."""
    indexed = Indexed(document)
    wanted = {indexed.axes(some) for some in combinations(indexed.names, min(document.strength, len(indexed.names)))}
    for submodel in document.submodels:
        wanted |= {indexed.axes(some) for some in combinations(submodel.axes, submodel.strength)}
    seeds = [indexed.partial(seed) for seed in sorted(document.seeds, key=lambda row: sorted(map(str, row.items())))]
    rest = indexed.partial(document.rest)
    found = cover(indexed.space(document.constraints), wanted, seeds, document.cover_seed, rest)
    return [indexed.row(indices) for indices in found]


def refused_rows(document: Document, constraint: Constraint) -> list[dict[str, Value]]:
    """Rows that break one rule and no other, in which every value that can appear so appears once."""
    indexed = Indexed(document)
    others = [other for other in document.constraints if other.rule != constraint.rule or other.rule is None]
    space = indexed.space(others, required=constraint)
    rest = indexed.partial(document.rest)
    found = cover(space, [(axis,) for axis in range(len(indexed.names))], [], document.cover_seed, rest)
    return [indexed.row(indices) for indices in found]


def cells(document: Document) -> tuple[Cell, ...]:
    """All cells: by model as the file lists them, valid ones first, then by id."""
    found: dict[str, Cell] = {}
    for row in valid_rows(document):
        _add(found, Cell(cell_id(row), row, "valid", fixed=document.fixed, workload=document.workload))
    for constraint in sorted(_ruled(document.constraints), key=lambda c: (c.rule or "", c.reason)):
        for row in refused_rows(document, constraint):
            rules = (constraint.rule or "",)
            _add(found, Cell(cell_id(row), row, "refused", rules, constraint.reason, document.fixed, document.workload))
    models = list(document.axes["model"])
    return tuple(
        sorted(found.values(), key=lambda cell: (models.index(cell.axes["model"]), cell.verdict != "valid", cell.id))
    )


def _ruled(constraints: Sequence[Constraint]) -> list[Constraint]:
    return [constraint for constraint in constraints if constraint.rule is not None]


def _add(found: dict[str, Cell], cell: Cell) -> None:
    known = found.setdefault(cell.id, cell)
    assert known.axes == cell.axes, f"two cells are called {cell.id}"  # the loader refuses labels that could clash
