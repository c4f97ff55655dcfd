"""What a person needs to see of a failed comparison: the tokens and the log-probabilities around it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from staticfire.harness.oracle.base import Tokens
from staticfire.harness.oracle.compare import Expected, Finding, Observed, first_difference

Token = tuple[int, str]
"""Id and text."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a person needs to see of a failure.

    Attributes:
        differs: Where the free-running continuations first differ; None if they agree.
        expected: The token there on the right side.
        observed: The token there on the side under test; None if it ended before.
        around: For the positions around the finding, the log-probabilities on both sides.
    """

    differs: int | None
    expected: Token | None
    observed: Token | None
    around: tuple[dict[str, Any], ...]


def evidence(
    expected: Expected, observed: Observed, finding: Finding, text: Callable[[int], str], reach: int = 1
) -> Evidence:
    """Gather the tokens and log-probabilities around a finding.

    Args:
        expected: The right side.
        observed: The side under test; may be of any shape.
        finding: Where to look.
        text: Token id -> text.
        reach: Positions shown before and after.
    """
    differs = first_difference(expected.tokens, observed.tokens)
    if differs is None and len(observed.tokens) < len(expected.tokens):
        differs = len(observed.tokens)
    around = tuple(
        _around(expected, observed, i, text)
        for i in range(max(0, finding.position - reach), min(len(expected.forced), finding.position + reach + 1))
    )
    return Evidence(differs, _token(expected.tokens, differs, text), _token(observed.tokens, differs, text), around)


def _token(tokens: Tokens, position: int | None, text: Callable[[int], str]) -> Token | None:
    if position is None or position >= len(tokens):
        return None
    return tokens[position], text(tokens[position])


def _around(expected: Expected, observed: Observed, position: int, text: Callable[[int], str]) -> dict[str, Any]:
    row = expected.rows[position]
    reported = observed.ids.ndim == 2 and position < len(observed.ids) and observed.ids.shape == observed.logprobs.shape
    ids = [int(i) for i in observed.ids[position][:4]] if reported else []
    shown = list(dict.fromkeys([*ids, *(int(i) for i in np.argsort(-row)[:3])]))
    got = dict(zip(ids, (float(x) for x in observed.logprobs[position]), strict=False)) if reported else {}
    return {
        "position": position,
        "forced": int(expected.forced[position]),
        "tokens": [
            {"id": i, "text": text(i), "expected": float(row[i]) if i < len(row) else None, "observed": got.get(i)}
            for i in shown
            if i >= 0
        ],
    }
