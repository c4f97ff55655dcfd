"""A matrix file as values: what the loader makes and everything else reads."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staticfire.harness.matrix.workload import Workload

Kind = Literal["impossible", "unsupported", "broken"]
Value = str | int | float | bool
Row = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Constraint:
    """Combinations that are not valid, and why.

    Attributes:
        when: Axis -> values; a row is hit when every axis named has one of its values.
        reason: Why, in one sentence.
        kind: `impossible` (means nothing), `unsupported` (the engine refuses it), `broken` (a known fault).
        rule: Code by which the engine must refuse it; None where it is never asked.
        issue: For `broken`, where the fault is tracked.
        line: Line in the file.
    """

    when: Mapping[str, tuple[Value, ...]]
    reason: str
    kind: Kind
    rule: str | None
    issue: str | None
    line: int

    def hits(self, row: Row) -> bool:
        """Whether the row is excluded by this constraint."""
        return all(any(same(row[axis], value) for value in values) for axis, values in self.when.items())


@dataclass(frozen=True, slots=True)
class Submodel:
    """Axes that belong together more closely than the rest: each `strength` of them meet in every combination."""

    axes: tuple[str, ...]
    strength: int


@dataclass(frozen=True, slots=True)
class Document:
    """A checked matrix file.

    Attributes:
        name: Name of the matrix.
        description: One line.
        where: The file, for messages.
        fixed: Keyword -> value, equal in every cell.
        axes: Axis -> values, in the order of the file.
        submodels: Axes with a strength of their own.
        constraints: In the order of the file.
        seeds: Rows, whole or partial, that must be among the valid cells.
        strength: Any this many axes meet in every feasible combination of values.
        cover_seed: Decides among equally good rows.
        rest: Axis -> the value it has wherever nothing is gained by another; for values that cost time.
        workload: What every cell is asked.
    """

    name: str
    description: str
    where: str
    fixed: Mapping[str, Any]
    axes: Mapping[str, tuple[Value, ...]]
    submodels: tuple[Submodel, ...]
    constraints: tuple[Constraint, ...]
    seeds: tuple[Row, ...]
    strength: int
    cover_seed: int
    rest: Row = field(default_factory=dict)
    workload: Workload = field(default_factory=Workload)


def same(left: object, right: object) -> bool:
    """Whether two axis values are the same; `true` is not 1, though Python says so."""
    return type(left) is type(right) and left == right


def canonical(value: object) -> tuple[str, str]:
    """A sort key for axis values of mixed types that does not depend on the order in the file."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return type(value).__name__, f"{value:024.6f}" if number else str(value)
