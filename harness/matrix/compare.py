"""What a matrix declares against what the engine answers, both ways."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.matrix.document import Constraint, Document
from staticfire.harness.matrix.ids import cell_id
from staticfire.harness.probe.base import Accepted, Outcome, Probe, Rejected, Undecided


@dataclass(frozen=True, slots=True)
class Finding:
    """A configuration on which matrix and engine disagree.

    Attributes:
        id: The cell.
        axes: Its axes.
        declared: What the matrix says: `valid`, or the rules by which it must be refused.
        answered: What the engine says, in the same words.
        message: Both in one sentence, with the engine's reason.
    """

    id: str
    axes: Mapping[str, Any]
    declared: str
    answered: str
    message: str


def compare(cells: Iterable[Cell], probe: Probe) -> tuple[Finding, ...]:
    """Ask the engine about each cell.

    Args:
        cells: Cells with their declared verdicts.
        probe: Who answers.

    Returns:
        One finding for each cell that the engine judges otherwise, or by other rules.
    """
    return tuple(finding for cell in cells if (finding := _judge(cell, probe)) is not None)


def every_combination(document: Document) -> Iterator[Cell]:
    """Each row of the whole product as a cell, except those that mean nothing or are known to be broken.

    A row that several rules should refuse has the codes of all of them.
    """
    for values in product(*document.axes.values()):
        row = dict(zip(document.axes, values, strict=True))
        hits = [constraint for constraint in document.constraints if constraint.hits(row)]
        if any(constraint.rule is None for constraint in hits):
            continue
        rules = tuple(sorted({constraint.rule for constraint in hits if constraint.rule is not None}))
        verdict: Literal["valid", "refused"] = "refused" if hits else "valid"
        yield Cell(cell_id(row), row, verdict, rules, _reasons(hits), document.fixed, document.workload)


def _reasons(hits: list[Constraint]) -> str | None:
    return "; ".join(dict.fromkeys(constraint.reason for constraint in hits)) or None


def _judge(cell: Cell, probe: Probe) -> Finding | None:
    declared = "valid" if cell.verdict == "valid" else f"refused by {', '.join(cell.rules)}"
    answered, why = _answer(probe.ask(cell.model, cell.config))
    if declared == answered:
        return None
    typed = " ".join(f"{name}={value}" for name, value in cell.config.items())
    message = f"the matrix says {declared}, the engine says {answered}{why} ({cell.model} {typed})"
    return Finding(cell.id, cell.axes, declared, answered, message)


def _answer(outcome: Outcome) -> tuple[str, str]:
    """The engine's verdict in the words of a cell, and its reason."""
    if isinstance(outcome, Accepted):
        return "valid", ""
    if isinstance(outcome, Rejected):
        return f"refused by {', '.join(outcome.rules)}", f": {outcome.message}"
    if isinstance(outcome, Undecided):
        return "accepted by the front end, and the worker is not known", f": {outcome.worker.because}"
    return "no answer", f": {outcome.detail}"
