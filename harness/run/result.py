"""The verdict of one cell, as it is journaled and reported."""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

Verdict = Literal[
    "passed",
    "refused as expected",
    "failed",
    "error",
    "refused unexpectedly",
    "accepted unexpectedly",
]

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
GOOD: frozenset[Verdict] = frozenset({"passed", "refused as expected"})


class CellResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one cell.

    Attributes:
        id: The cell's id.
        axes: The cell's axes.
        verdict: The verdict.
        seconds: Wall time in the worker.
        rule: The rule that refused it, where one did.
        detail: Figures and, for a failure, the evidence; the keys are documented in docs/results.md.
    """

    id: str
    axes: Mapping[str, Any]
    verdict: Verdict
    seconds: float
    rule: str | None = None
    detail: Mapping[str, Any] | None = None
