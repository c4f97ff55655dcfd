"""Compare what an engine computed with what it should have: values at every position, then tokens, then routing.

Values are compared teacher-forced over the whole continuation, so that a divergence early on hides nothing after it.
A verdict is a grade, never a bare boolean, and a failure carries its first bad position.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from staticfire.harness.oracle.base import Array, Grade, Tokens, worst
from staticfire.harness.oracle.laws import SUSPECT, Tolerance

Kind = Literal["shape", "value", "mean", "argmax", "token", "omission", "routing"]


@dataclass(frozen=True, slots=True)
class Expected:
    """The side that is right.

    Attributes:
        tokens: Its free-running greedy continuation, n tokens.
        forced: The continuation its values are for, n tokens.
        rows: Log-probabilities [n, V] over `forced`.
    """

    tokens: Tokens
    forced: Tokens
    rows: Array


@dataclass(frozen=True, slots=True)
class Observed:
    """The side under test.

    Attributes:
        tokens: Its free-running greedy continuation.
        ids: [n, m] token ids with reported log-probabilities over `Expected.forced`; column 0 is the forced token, the
            rest are the engine's own best.
        logprobs: [n, m] their values.
        argmax: [n] the token the engine would have chosen.
        routing: Experts used, [L, T, k]; -1 where the position was computed by nobody who is known.
    """

    tokens: Tokens
    ids: Array
    logprobs: Array
    argmax: Array
    routing: Array


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is off.

    Attributes:
        grade: How bad.
        kind: What kind of thing.
        position: Index into the continuation.
        message: What is off, in numbers.
    """

    grade: Grade
    kind: Kind
    position: int
    message: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One prompt, compared.

    Attributes:
        grade: The worst of all findings; `exact` without any.
        max_delta: Largest |delta logprob|.
        rms: Root mean square of the deltas.
        findings: What is off, by position.
        flips: Tokens x layers where other experts were chosen.
    """

    grade: Grade
    max_delta: float
    rms: float
    findings: tuple[Finding, ...]
    flips: int = 0

    @property
    def first(self) -> Finding | None:
        """The earliest finding of the worst grade."""
        bad = [finding for finding in self.findings if finding.grade == self.grade]
        return min(bad, key=lambda finding: finding.position) if bad else None


@dataclass(frozen=True, slots=True)
class Flips:
    """Where other experts were chosen than the reference prefers.

    Attributes:
        count: Pairs of token and layer.
        gap: Largest distance in router logits between an expert passed over and one chosen in its place.
        token: Position of that pair among the tokens fed.
        layer: Its MoE layer, counted from 0.
    """

    count: int
    gap: float
    token: int
    layer: int


def compare(expected: Expected, observed: Observed, allowed: Tolerance, flips: Flips | None = None) -> Comparison:
    """Grade one prompt.

    Args:
        expected: The right side. With `flips`, its rows were computed under the observed routing.
        observed: The side under test.
        allowed: The tolerance.
        flips: Routing differences; their gaps are graded here.

    Returns:
        `exact`: equal tokens, values within tolerance, equal routing. `within-noise`: tokens or experts changed places
        only where the reference's margin is within tolerance. `suspect`: beyond, by less than `SUSPECT` times.
        `wrong`: anything else, among it NaN, missing tokens, or nothing at all.
    """
    shape = _shape_fault(expected, observed)
    if shape is not None:
        return Comparison("wrong", float("nan"), float("nan"), (shape,))
    delta = np.abs(observed.logprobs - np.take_along_axis(expected.rows, observed.ids, -1))
    rms = float(np.sqrt(np.mean(np.square(delta, dtype=np.float64))))
    findings = [
        *_values(delta, observed, allowed),
        *_mean(rms, delta, allowed),
        *_argmax(expected, observed, allowed),
        *_tokens(expected, observed, allowed),
        *_omitted(expected, observed, allowed),
        *(_routing(flips, allowed) if flips is not None and flips.count else ()),
    ]
    grade = worst(["exact", *(finding.grade for finding in findings)])
    findings.sort(key=lambda finding: finding.position)
    return Comparison(grade, float(delta.max()), rms, tuple(findings), flips.count if flips else 0)


def routing_flips(logits: Array, chosen: Array) -> Flips:
    """Compare choices with what router logits prefer.

    Args:
        logits: Reference router logits [L, T, E].
        chosen: Experts chosen [L, T, k]; a row with -1 is unknown and counts as no flip.
    """
    if not chosen.size:
        return Flips(0, 0.0, 0, 0)
    known: Array = np.all(chosen >= 0, axis=-1)
    picked = np.zeros(logits.shape, dtype=bool)
    np.put_along_axis(picked, np.where(known[..., None], chosen, 0).astype(np.int64), True, -1)
    lowest_chosen = np.where(picked, logits, np.inf).min(-1)
    highest_passed = np.where(picked, -np.inf, logits).max(-1)
    gap = np.where(known, highest_passed - lowest_chosen, -np.inf)
    gap[known & (picked.sum(-1) < chosen.shape[-1])] = np.inf  # an expert chosen twice
    layer, token = np.unravel_index(int(gap.argmax()), gap.shape)
    return Flips(int((gap > 0).sum()), max(0.0, float(gap.max())), int(token), int(layer))


def _shape_fault(expected: Expected, observed: Observed) -> Finding | None:
    n = len(expected.forced)
    if not n or len(expected.rows) != n:
        raise ValueError(f"nothing to compare with: {n} forced tokens, {len(expected.rows)} rows")
    if len(observed.tokens) != len(expected.tokens):
        at = min(len(observed.tokens), len(expected.tokens))
        return Finding("wrong", "shape", at, f"{len(observed.tokens)} tokens, {len(expected.tokens)} expected")
    if observed.ids.shape != observed.logprobs.shape or observed.ids.ndim != 2 or not observed.ids.size:
        return Finding("wrong", "shape", 0, "no log-probabilities")
    if len(observed.ids) != n or len(observed.argmax) != n:
        return Finding(
            "wrong", "shape", min(len(observed.ids), n), f"{len(observed.ids)} positions with values, {n} expected"
        )
    known: Array = (observed.ids >= 0) & (observed.ids < expected.rows.shape[-1])
    if not known.all():
        return Finding("wrong", "shape", int(np.argmin(known.all(-1))), "a token id outside the vocabulary")
    finite: Array = np.isfinite(observed.logprobs)
    if not finite.all():
        return Finding("wrong", "shape", int(np.argmin(finite.all(-1))), "a log-probability that is no finite number")
    misplaced = observed.ids[:, 0] != np.asarray(expected.forced)
    if misplaced.any():
        return Finding("wrong", "shape", int(misplaced.argmax()), "values for another token than the one asked for")
    return None


def _values(delta: Array, observed: Observed, allowed: Tolerance) -> list[Finding]:
    worst_of = delta.max(-1)
    found = []
    for position in np.flatnonzero(~(worst_of <= allowed.max)):
        token = int(observed.ids[position, delta[position].argmax()])
        off = float(worst_of[position])
        found.append(_graded("value", off, allowed.max, int(position), f"logprob of token {token} off by {off:.3g}"))
    return found


def _mean(rms: float, delta: Array, allowed: Tolerance) -> list[Finding]:
    if rms <= allowed.rms:
        return []
    at = int(np.square(delta).mean(-1).argmax())
    return [_graded("mean", rms, allowed.rms, at, f"root mean square of the logprob deltas is {rms:.3g}")]


def _argmax(expected: Expected, observed: Observed, allowed: Tolerance) -> list[Finding]:
    best = expected.rows.argmax(-1)
    return [
        _swap(expected.rows[i], int(best[i]), int(observed.argmax[i]), int(i), allowed, "argmax")
        for i in np.flatnonzero(best != observed.argmax)
    ]


def _tokens(expected: Expected, observed: Observed, allowed: Tolerance) -> list[Finding]:
    """Grade the first divergence of the free runs; what follows it has another context and is covered by the values."""
    at = first_difference(expected.tokens, observed.tokens)
    if at is None:
        return []
    one, other = expected.tokens[at], observed.tokens[at]
    if expected.tokens[:at] != expected.forced[:at]:  # the right side had left `forced` before: no row has this context
        grade: Grade = "within-noise" if allowed.margin > 0 else "wrong"
        return [Finding(grade, "token", at, f"token {other} instead of {one}, where no margin is known")]
    if not 0 <= other < expected.rows.shape[-1]:
        return [Finding("wrong", "token", at, f"token {other} is outside the vocabulary")]
    return [_swap(expected.rows[at], one, other, at, allowed, "token")]


def _omitted(expected: Expected, observed: Observed, allowed: Tolerance) -> list[Finding]:
    """Find a token that should be among the engine's best and is not reported."""
    unreported = expected.rows.copy()
    np.put_along_axis(unreported, observed.ids, -np.inf, -1)
    best = unreported.max(-1)
    if observed.ids.shape[1] < 2:  # the forced token alone: no ranking is claimed
        return []
    over = best - observed.logprobs[:, 1:].min(-1)
    limit = 2 * allowed.max
    return [
        _graded(
            "omission", float(over[i]), limit, int(i), f"token {int(unreported[i].argmax())} is missing among the best"
        )
        for i in np.flatnonzero(over > limit)
    ]


def _routing(flips: Flips, allowed: Tolerance) -> list[Finding]:
    where = f"{flips.count} routing flips, the widest by {flips.gap:.3g} (MoE layer {flips.layer}, token {flips.token})"
    if flips.gap <= allowed.router:
        return [Finding("within-noise", "routing", 0, where)]
    return [_graded("routing", flips.gap, allowed.router, 0, where)]


def _swap(
    row: Array, right: int, got: int, position: int, allowed: Tolerance, what: Literal["argmax", "token"]
) -> Finding:
    margin = float(row[right] - row[got])
    message = f"{what} {got} instead of {right}, margin {margin:.3g}"
    if margin <= allowed.margin:
        return Finding("within-noise", what, position, message)
    return _graded(what, margin, allowed.margin, position, message)


def _graded(kind: Kind, off: float, allowed: float, position: int, message: str) -> Finding:
    grade: Grade = "suspect" if off <= SUSPECT * allowed else "wrong"
    return Finding(grade, kind, position, f"{message}; allowed {allowed:.3g}")


def first_difference(one: Tokens, other: Tokens) -> int | None:
    """Index of the first place where two continuations differ; None if one begins with the other."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
