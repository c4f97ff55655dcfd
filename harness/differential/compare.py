"""Two answers side by side. What one of them does not know is counted, and never taken for agreement."""

from collections.abc import Iterator
from typing import Any, Final

from staticfire.harness.differential.base import Answer, Case, Comparison, Disagreement, Opinion, Subject
from staticfire.harness.differential.ours import WEIGHED

OPEN: Final = (None, "auto")
"""What an engine's value is while it leaves the choice to somebody later."""


def compare(case: Case, ours: Answer, theirs: Answer) -> Comparison:
    """Compare verdicts, then values, then room; each only where what comes before is accepted by both."""
    unknown: list[tuple[Subject, str, str]] = []
    found: list[Disagreement] = []
    first = _verdicts(case, "configuration", ours.configuration, theirs.configuration, unknown, found)
    if first != "accepted" and not (
        first == "not known" and ours.values and theirs.configuration.verdict == "accepted"
    ):
        return Comparison(first, "not asked", 0, tuple(unknown), tuple(found))
    names = [name for name in ours.values if name in theirs.values and _is_said(name, ours, theirs)]
    found += _differences(case, names, ours, theirs)
    if first != "accepted":
        return Comparison(first, "not asked", len(names), tuple(unknown), tuple(found))
    second = _verdicts(case, "capacity", ours.capacity, theirs.capacity, unknown, found)
    return Comparison(first, second, len(names), tuple(unknown), tuple(found))


def _verdicts(
    case: Case,
    subject: Subject,
    ours: Opinion,
    theirs: Opinion,
    unknown: list[tuple[Subject, str, str]],
    found: list[Disagreement],
) -> str:
    pairs = (("ours", ours), ("theirs", theirs))
    gaps = [(subject, who, said.because) for who, said in pairs if said.verdict == "not known"]
    if gaps:
        unknown += gaps
        return "not known"
    if ours.verdict == "refused" and theirs.blind and {code for code, _ in ours.reasons} <= WEIGHED:
        unknown.append((subject, "theirs", theirs.blind))
        return "not known"
    if ours.verdict == theirs.verdict:
        return ours.verdict
    if ours.verdict == "refused":
        found += [Disagreement(case, "ours refuses", subject, code, why, "accepted") for code, why in ours.reasons]
    else:
        found.append(Disagreement(case, "theirs refuses", subject, theirs.because, "accepted", theirs.message))
    return "differs"


def _is_said(name: str, ours: Answer, theirs: Answer) -> bool:
    """Whether the engine has decided: what nobody typed may be left open."""
    return name in ours.typed or theirs.values[name] not in OPEN or name.startswith("runtime.")


def _differences(case: Case, names: list[str], ours: Answer, theirs: Answer) -> Iterator[Disagreement]:
    for name in names:
        mine, other = ours.values[name], theirs.values[name]
        if not _equal(mine, other):
            yield Disagreement(case, "values differ", "configuration", name, mine, other)
    for name, most in theirs.bounds.items():
        mine = ours.values.get(name)
        if isinstance(mine, int) and mine > most:
            yield Disagreement(case, "values differ", "capacity", name, mine, f"at most {most}")


def _equal(mine: Any, other: Any) -> bool:
    if isinstance(mine, bool) or isinstance(other, bool):
        return mine is other
    if isinstance(mine, float) or isinstance(other, float):
        return isinstance(mine, int | float) and isinstance(other, int | float) and abs(mine - other) < 1e-9
    return bool(mine == other)
