"""`--format text`: for a person at a terminal. Findings, then coverage, then the last line."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import click

from staticfire.harness.check.base import Coverage, Finding, FormCoverage, Place, Report
from staticfire.harness.check.formats.base import advice, listed, printed, raised, which
from staticfire.harness.check.messages import one_line, printable

NAME = "text"
LAST_LINE = True

COLOURS: Final = {"error": "red", "warning": "yellow", "note": "cyan"}
MAX_MESSAGE_LINES: Final = 12
MAX_EXCERPTS: Final = 3
MAX_WIDTH: Final = 160
MAX_REASONS: Final = 12
MAX_STALE: Final = 5


def render(report: Report) -> str:
    """The text, with terminal colours; `click.echo` strips them where nobody can see them."""
    # Lines of the sources stay as they are, since columns count in them; `_excerpt` makes them printable.
    report = replace(printed(report), lines=report.lines)
    blocks = [_finding(finding, report) for finding in report.findings]
    blocks.append(_coverage(report))
    return "\n\n".join("\n".join(block) for block in blocks) + f"\n\n{report.last_line}\n"


def _finding(finding: Finding, report: Report) -> list[str]:
    head, *rest = printable(finding.message).splitlines()[:MAX_MESSAGE_LINES] or [""]
    label = click.style(
        f"{finding.certainty}: {finding.kind} {finding.facts.code}", fg=COLOURS[finding.level], bold=True
    )
    lines = [f"{label}: {click.style(one_line(head, 400), bold=True)}", *(f"    {line}" for line in rest)]
    if where := raised(finding):
        lines.append(f"  {where}")
    lines += [f"  because {one_line(link)}" for link in finding.chain]
    lines += [f"  {click.style(line, fg='green')}" for line in advice(finding)]
    if finding.kind == "refused" and not finding.repairs:
        lines.append(f"  no repair was found{f': {finding.searched}' if finding.searched else ''}")
    for index, place in enumerate(finding.sites):
        lines += _place(place, report, excerpt=index < MAX_EXCERPTS)
    return lines


def _place(place: Place, report: Report, *, excerpt: bool) -> Iterator[str]:
    inside = f" in {one_line(place.function, 100)}" if place.function else ""
    yield f"  --> {place}{inside}"
    line = report.lines.get(place.path, {}).get(place.line)
    if excerpt and line is not None:
        yield from _excerpt(place, line)
    if about := which(place):
        yield f"      {about}"
    if place.certainty == "possible":
        yield from (f"      possible: {reason}" for reason in place.why)
    else:
        yield from (f"      {reason}" for reason in place.why)


def _excerpt(place: Place, line: str) -> Iterator[str]:
    """The first line of the call with carets under it; tabs and control characters take the width they are shown in."""
    number = str(place.line)
    gutter = " " * (6 + len(number))
    start = place.column - 1
    one_liner = place.end_line == place.line and place.end_column > place.column
    end = place.end_column - 1 if one_liner else len(line.rstrip())
    before, marked, after = (_flat(part) for part in (line[:start], line[start:end], line[end:]))
    indent = len(before) - len(before.lstrip())
    before = before[indent:]
    shown = f"{before}{marked}{after}".rstrip()
    yield f"{gutter} |"
    yield f"      {number} | {shown[:MAX_WIDTH]}"
    carets = "^" * max(1, min(len(marked), MAX_WIDTH - len(before)))
    yield f"{gutter} | {' ' * len(before)}{carets}"


def _flat(text: str) -> str:
    return printable(text.replace("\t", "    "))


def _coverage(report: Report) -> list[str]:
    coverage = report.coverage
    lines = [click.style(f"Coverage: {report.engine} on {report.device}", bold=True), *_table(coverage)]
    if coverage.by_reason:
        reasons = list(coverage.by_reason.items())
        lines += ["", f"  {'sites':>6}  what was left out, and why"]
        lines += [f"  {count:>6}  {one_line(reason, 120)}" for reason, count in reasons[:MAX_REASONS]]
        if len(reasons) > MAX_REASONS:
            lines.append(f"          and {len(reasons) - MAX_REASONS} more reasons")
    lines += _not_known(coverage)
    lines += _notes(report)
    return lines


def _not_known(coverage: Coverage) -> Iterator[str]:
    """What nobody knows of the answers, by part: neither accepted nor refused."""
    rows = [(count, part, why) for part, reasons in coverage.not_known.items() for why, count in reasons.items()]
    if rows:
        yield ""
        yield f"  {'sites':>6}  {'part':<9}  not known, because"
        yield from (f"  {count:>6}  {part:<9}  {one_line(why, 120)}" for count, part, why in rows[:MAX_REASONS])
        if len(rows) > MAX_REASONS:
            yield f"          and {len(rows) - MAX_REASONS} more reasons"


def _table(coverage: Coverage) -> Iterator[str]:
    heads = ("sites", "full", "partial", "judged", "model unknown", "skipped")
    rows: list[tuple[str, Coverage | FormCoverage]] = [*coverage.by_form.items(), ("all", coverage)]
    width = max(len(name) for name, _ in rows)
    yield f"  {'form':{width}}  " + "  ".join(heads)
    for name, row in rows:
        figures = (row.sites, row.full, row.partial, row.judged, row.unknown_model, row.skipped)
        yield f"  {name:{width}}  " + "  ".join(f"{n:>{len(head)}}" for n, head in zip(figures, heads, strict=True))


def _notes(report: Report) -> Iterator[str]:
    coverage = report.coverage
    if coverage.unknown_models:
        models = (f"{model} ({count})" for model, count in coverage.unknown_models.items())
        yield ""
        yield f"  Models without a configuration at hand (sites): {listed(models, 6)}."
        yield "  Supply one as OWNER/NAME/config.json in a folder, and name the folder: --model-configs DIR."
    if coverage.unanswered:
        yield ""
        yield f"  {sum(coverage.unanswered.values())} of {coverage.questions} questions without an answer, such as:"
        for detail, count in list(coverage.unanswered.items())[:3]:
            yield f"    {count} x {one_line(detail, 140)}"
    if coverage.unread:
        yield ""
        yield f"  Not read, or only in part ({len(coverage.unread)}), such as:"
        yield from (f"    {one_line(note, 240)}" for note in coverage.unread[:3])
    comments = sum(one.how == "comment" for one in report.silenced)
    if comments:
        yield f"  Allowed by comments: {comments}."
    if len(report.silenced) > comments:
        yield f"  Known by the baseline: {len(report.silenced) - comments}."
    if report.stale:
        yield f"  The baseline holds more than there is; --update-baseline takes it out ({len(report.stale)}):"
        yield from (f"    {one_line(entry, 200)}" for entry in report.stale[:MAX_STALE])
        if len(report.stale) > MAX_STALE:
            yield f"    and {len(report.stale) - MAX_STALE} more"
