"""How much of a scan was judged, and why the rest was not."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from staticfire.harness.check.base import Coverage, FormCoverage
from staticfire.harness.check.group import site_key
from staticfire.harness.check.judge import BROKEN, Judged
from staticfire.harness.check.messages import one_line
from staticfire.harness.check.question import Answer, Engine, Question, UnknownModel
from staticfire.harness.probe.base import PARTS, Accepted, Crashed, Part, Rejected, Undecided
from staticfire.harness.scan.base import Configuration, Scan, Site, Unknown, Unread

JUDGED = "judged"
NO_MODEL = ("no configuration of the model at hand", "the model is not known")


@dataclass(frozen=True, slots=True)
class SiteState:
    """One site: how much of it is known, and what became of it."""

    site: Site
    full: bool
    known: bool
    state: str
    doubt: str = ""
    unknown: tuple[tuple[Part, str], ...] = ()
    withheld: tuple[str, ...] = ()


def states(scan: Scan, judged: Iterable[Judged], engine: Engine) -> list[SiteState]:
    """Every site, in the order of the scan.

    Args:
        scan: What was read.
        judged: Its cases and their answers.
        engine: Knows why the answer to a question may be another for the model itself, and what it was asked without.
    """
    by_site: dict[tuple[str, int, int, str], list[Judged]] = {}
    for one in judged:
        by_site.setdefault(site_key(one.case.site), []).append(one)
    return [_state(site, by_site.get(site_key(site), []), engine) for site in scan.sites]


def _unread(note: Unread) -> str:
    """What was not read, and why; line 0 stands for the whole file."""
    where = f"{note.path}:{note.line}" if note.line else note.path
    return one_line(f"{where}: {note.why}")


def _state(site: Site, judged: Sequence[Judged], engine: Engine) -> SiteState:
    full = all(configuration.full for configuration in site.configurations)
    known = any(configuration.known for configuration in site.configurations)
    unknown = tuple(dict.fromkeys(pair for one in judged for pair in one.unknown))
    withheld = _withheld(judged, engine)
    if any(one.decided for one in judged):
        return SiteState(site, full, known, JUDGED, _doubt(judged, engine.doubt), unknown, withheld)
    reasons = Counter(one.reason() for one in judged)
    # A case that runs says more than one that is skipped.
    running = Counter({reason: n for reason, n in reasons.items() if not _skipped(reason)}) or reasons
    state = min(running, key=lambda reason: (-running[reason], reason)) if running else "nothing was found to ask"
    return SiteState(site, full, known, state, unknown=unknown, withheld=withheld)


def _doubt(judged: Iterable[Judged], doubt: Callable[[Question], str]) -> str:
    """What is doubtful about every answer that a site got; empty where one of them is beyond doubt."""
    doubts = [
        doubt(variant.question)
        for one in judged
        for variant, answer in one.pairs
        if variant.question is not None and isinstance(answer, Accepted | Undecided | Rejected)
    ]
    return min(doubts) if all(doubts) else ""


def _withheld(judged: Iterable[Judged], engine: Engine) -> tuple[str, ...]:
    """Variables that the site sets and the engine was asked without: `NAME: why`."""
    questions = (variant.question for one in judged for variant in one.case.variants if variant.question is not None)
    found = {name: why for question in questions for name, why in engine.withheld(question).items()}
    return tuple(f"{name}: {found[name]}" for name in sorted(found))


def _skipped(reason: str) -> bool:
    return reason in {"skipped by its own condition", "expected to fail"}


def coverage(
    scan: Scan, found: Sequence[SiteState], judged: Sequence[Judged], answers: Mapping[str, Answer]
) -> Coverage:
    """Count.

    Args:
        scan: What was read.
        found: What became of each of its sites.
        judged: Cases and their answers.
        answers: Key of a question -> its answer, of every question asked.
    """
    forms: dict[str, list[SiteState]] = {}
    for state in found:
        forms.setdefault(state.site.form, []).append(state)
    total = _figures(found)
    return Coverage(
        sites=total.sites,
        full=total.full,
        partial=total.partial,
        judged=total.judged,
        unknown_model=total.unknown_model,
        skipped=total.skipped,
        by_form={form: _figures(forms[form]) for form in sorted(forms)},
        by_reason=_ranked(reason for state in found for reason in _reasons(state)),
        questions=len(answers),
        unanswered=_ranked(one_line(a.detail, 160) for a in answers.values() if isinstance(a, Crashed)),
        unknown_models=_ranked(_missing_models(judged)),
        not_known={part: reasons for part in PARTS if (reasons := _not_known(found, part))},
        unread=tuple(map(_unread, scan.unread)),
    )


def _not_known(found: Iterable[SiteState], part: Part) -> dict[str, int]:
    """Why a part is not known -> at how many sites."""
    return _ranked(one_line(why, 160) for state in found for name, why in state.unknown if name == part)


def _figures(found: Sequence[SiteState]) -> FormCoverage:
    return FormCoverage(
        sites=len(found),
        full=sum(one.full for one in found),
        partial=sum(one.known and not one.full for one in found),
        judged=sum(one.state == JUDGED for one in found),
        unknown_model=sum(one.state in NO_MODEL or one.state.startswith(BROKEN) for one in found),
        skipped=sum(_skipped(one.state) for one in found),
    )


def _reasons(state: SiteState) -> Iterator[str]:
    if state.state != JUDGED:
        yield f"not judged: {state.state}"
    elif state.doubt:
        yield f"judged, but {state.doubt}"
    yield from (f"without the variable {one}" for one in state.withheld)
    if not state.full:
        yield from sorted({reason for one in state.site.configurations for reason in _unknowns(one)})


def _unknowns(configuration: Configuration) -> Iterator[str]:
    if not configuration.complete:
        yield f"not full: keywords ({configuration.missing or 'unknown'})"
    yield from (f"not full: model ({unknown.reason})" for unknown in _inside(configuration.model))
    for typed in configuration.keywords.values():
        yield from (f"not full: value ({unknown.reason})" for unknown in _inside(typed.value))


def _inside(value: object) -> Iterator[Unknown]:
    match value:
        case Unknown():
            yield value
        case dict():
            for item in value.values():
                yield from _inside(item)
        case list() | tuple():
            for item in value:
                yield from _inside(item)


def _missing_models(judged: Iterable[Judged]) -> Iterator[str]:
    """A model once for each site that was not judged for want of it."""
    waiting: dict[tuple[str, int, int, str], set[str]] = {}
    done = set()
    for one in judged:
        key = site_key(one.case.site)
        if one.decided:
            done.add(key)
        waiting.setdefault(key, set()).update(
            a.model for a in one.answers if isinstance(a, UnknownModel) and not a.fault
        )
    for key, models in waiting.items():
        if key not in done:
            yield from models


def _ranked(reasons: Iterable[str]) -> dict[str, int]:
    counts = Counter(reasons)
    return {reason: counts[reason] for reason in sorted(counts, key=lambda reason: (-counts[reason], reason))}
