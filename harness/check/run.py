"""The check: a scan and an engine in, a report out. Prints nothing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from staticfire.harness.check import baseline, chain, suppress
from staticfire.harness.check.base import Finding, Place, Report, Silenced, Verdict
from staticfire.harness.check.cases import cases
from staticfire.harness.check.coverage import JUDGED, SiteState, coverage, states
from staticfire.harness.check.group import findings, order, site_key
from staticfire.harness.check.judge import Judged, answer, refusals
from staticfire.harness.check.negative import Expectation, expectation
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.question import Desk, Engine
from staticfire.harness.check.redundant import redundant
from staticfire.harness.check.repair import Repairs
from staticfire.harness.check.said import remarks
from staticfire.harness.check.values import replaced
from staticfire.harness.check.vocabulary import Vocabulary, vocabulary
from staticfire.harness.probe.base import Rejected
from staticfire.harness.scan.base import Negative, Scan, Site
from staticfire.harness.scan.files import find, shown


@dataclass(frozen=True, slots=True)
class Options:
    """What a check looks for.

    Attributes:
        redundant: Also report typed values that change nothing.
        every_layer: Also report what becomes of the defaults of wrappers, not only of what is typed at a site.
    """

    redundant: bool = False
    every_layer: bool = False


def check(scan: Scan, engine: Engine, options: Options | None = None) -> Report:
    """Judge a scan.

    Args:
        scan: What was read.
        engine: Who answers.
        options: What to look for.

    Returns:
        Everything that was found; comments and baseline are not applied yet.
    """
    options = options or Options()
    desk = Desk(engine)
    every = cases(scan, engine.device)
    words = vocabulary(every, engine.keywords)
    judged = answer(every, desk)
    seen = observe(judged, desk, words, options)
    if options.redundant:
        seen += list(redundant(judged, desk, words, seen))
    found = findings(seen, _totals(judged), Repairs(desk, words), lambda one: _chain(one, desk))
    asked = states(scan, judged, engine)
    figures = coverage(scan, asked, judged, desk.answers)
    return Report(engine.title, engine.device, tuple(found), figures, verdicts=tuple(map(_verdict, asked)))


def observe(judged: Sequence[Judged], desk: Desk, words: Vocabulary, options: Options) -> list[Observation]:
    """Everything that there is to say about single cases, but for redundant values."""
    expectations = _expectations(judged, desk)
    seen: list[Observation] = []
    for one in judged:
        if one.case.skipped:
            continue
        seen += refusals(one, desk, expectations)
        seen += replaced(one, desk, words, every_layer=options.every_layer)
        seen += remarks(one, desk, words, every_layer=options.every_layer)
    return seen


def _expectations(judged: Sequence[Judged], desk: Desk) -> dict[Negative, Expectation]:
    expected = {one.case.negative for one in judged if one.case.negative is not None}
    if not expected:
        return {}
    said = sorted({given.message for one in judged for given in one.answers if isinstance(given, Rejected)})
    templates = desk.engine.messages()
    return {one: expectation(one.match, one.exceptions, said, templates) for one in expected}


def _totals(judged: Iterable[Judged]) -> dict[tuple[str, int, int, str], int]:
    totals: dict[tuple[str, int, int, str], int] = {}
    sites: dict[tuple[str, int, int, str], Site] = {}
    for one in judged:
        if not one.case.skipped:
            key = site_key(one.case.site)
            totals[key] = totals.get(key, 0) + 1
            sites[key] = one.case.site
    return {key: count + sites[key].truncated for key, count in totals.items()}


def _chain(one: Observation, desk: Desk) -> tuple[str, ...]:
    if one.kind not in {"refused", "refused-otherwise"} or one.variant.question is None:
        return ()
    return chain.told(one.variant, desk)


def _verdict(state: SiteState) -> Verdict:
    where = state.site.where
    place = Place(
        path=where.path,
        line=where.line,
        column=where.column,
        end_line=where.end_line or where.line,
        end_column=where.end_column,
        function=state.site.function,
        form=state.site.form,
        certainty="certain",
    )
    return Verdict(place, state.state, tuple(f"{part}: {why}" for part, why in state.unknown))


def accept(report: Report, paths: Iterable[Path], known: Mapping[str, baseline.Entry] | None) -> Report:
    """Take away what comments in the sources and the baseline accept, and load the lines that are left to be shown.

    Args:
        report: A report.
        paths: Where to look for comments.
        known: The baseline, None without one.
    """
    comments = [comment for file in find(list(paths)).files for comment in suppress.read(file, shown(file))]
    spans: dict[str, list[tuple[int, int, bool]]] = {}
    for verdict in report.verdicts:
        place = verdict.place
        spans.setdefault(place.path, []).append((place.line, place.end_line, verdict.state == JUDGED))
    left, silenced = suppress.apply(report.findings, comments, spans)
    stale: tuple[str, ...] = ()
    if known is not None:
        left, more, stale = baseline.apply(left, known)
        silenced += more
    return _shown(report, order(left), silenced, stale)


def _shown(report: Report, left: list[Finding], silenced: list[Silenced], stale: tuple[str, ...]) -> Report:
    return Report(
        engine=report.engine,
        device=report.device,
        findings=tuple(left),
        coverage=report.coverage,
        silenced=tuple(silenced),
        stale=stale,
        verdicts=report.verdicts,
        lines=excerpts(left),
    )


def excerpts(found: Iterable[Finding]) -> dict[str, dict[int, str]]:
    """The first lines of every site; files that are gone have none."""
    wanted: dict[str, set[int]] = {}
    for finding in found:
        for place in finding.sites:
            wanted.setdefault(place.path, set()).add(place.line)
    result: dict[str, dict[int, str]] = {}
    for path in sorted(wanted):
        try:
            lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        result[path] = {number: lines[number - 1] for number in sorted(wanted[path]) if 0 < number <= len(lines)}
    return result
