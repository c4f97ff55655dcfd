"""Exact feasibility under constraints, by backtracking. Knows indices only: no names, no values, no files."""

from collections.abc import Iterator, Mapping, Sequence

Clause = Mapping[int, frozenset[int]]
Partial = dict[int, int]


class Space:
    """Axes by index, the values allowed on each, and forbidden combinations.

    A clause forbids every row that has, on each axis it names, one of the values it names there.
    """

    def __init__(self, domains: Sequence[Sequence[int]], clauses: Sequence[Clause]) -> None:
        """Take the domains and clauses; values outside a domain are dropped from the clauses."""
        self.domains = [tuple(values) for values in domains]
        cut = [{axis: banned & set(self.domains[axis]) for axis, banned in clause.items()} for clause in clauses]
        self.clauses = [clause for clause in cut if all(clause.values())]
        self._of_axis: list[list[Clause]] = [[] for _ in self.domains]
        for clause in self.clauses:
            for axis in clause:
                self._of_axis[axis].append(clause)
        self._bound = [axis for axis, clauses in enumerate(self._of_axis) if clauses]
        self._known: dict[tuple[int | None, ...], bool] = {}

    def allows(self, row: Partial) -> bool:
        """Whether no clause is met in full by what is assigned."""
        return all(any(row.get(axis) not in banned for axis, banned in clause.items()) for clause in self.clauses)

    def complete(self, partial: Partial) -> Partial | None:
        """Extend a partial row to a whole one that no clause forbids; None if there is none."""
        if any(value not in self.domains[axis] for axis, value in partial.items()) or not self.allows(partial):
            return None
        if any(not domain for domain in self.domains):
            return None
        row = dict(partial)
        if not self._search(row):
            return None
        for axis, domain in enumerate(self.domains):
            # No live clause is left, so whatever is unassigned is free.
            row.setdefault(axis, domain[0])
        return row

    def feasible(self, partial: Partial) -> bool:
        """Whether some whole row extends the partial one."""
        # Only the axes that a clause names matter, so few answers serve many rows.
        key = tuple([partial.get(axis) for axis in self._bound])
        if key not in self._known:
            bound = {axis: value for axis, value in zip(self._bound, key, strict=True) if value is not None}
            self._known[key] = self.complete(bound) is not None
        return self._known[key] and all(value in self.domains[axis] for axis, value in partial.items())

    def still_feasible(self, partial: Partial, axis: int) -> bool:
        """The same, for a partial row that was feasible before `axis` was assigned."""
        touched = self._of_axis[axis]
        return not any(partial[axis] in clause[axis] for clause in touched) or self.feasible(partial)

    def _search(self, row: Partial) -> bool:
        """Assign the axes of live clauses, most constrained clause first, until none is live."""
        clause = min(self._live(row), key=lambda live: sum(axis not in row for axis in live), default=None)
        if clause is None:
            return True
        for axis, banned in clause.items():
            if axis in row:
                continue
            escapes = [value for value in self.domains[axis] if value not in banned]
            for value in escapes:
                row[axis] = value
                if self.allows(row) and self._search(row):
                    return True
                del row[axis]
        return False

    def _live(self, row: Partial) -> Iterator[Clause]:
        """Clauses that could still be met: every assigned axis has a banned value, and one axis is unassigned."""
        for clause in self.clauses:
            if all(axis not in row or row[axis] in banned for axis, banned in clause.items()) and any(
                axis not in row for axis in clause
            ):
                yield clause
