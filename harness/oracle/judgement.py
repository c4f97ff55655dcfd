"""What `judge` says about a cell. Imports neither numpy nor torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staticfire.harness.run.result import Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict of one cell.

    Attributes:
        verdict: As journaled.
        grade: Of a cell that ran: the worst over all comparisons.
        rule: The rule that refused it, where one did; several are joined by `+`.
        detail: Figures, and for a failure the evidence; plain values only. docs/oracles.md lists the keys.
    """

    verdict: Verdict
    grade: Literal["exact", "within-noise", "suspect", "wrong"] | None = None
    rule: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
