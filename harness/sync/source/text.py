"""An audit of source for people."""

from collections.abc import Sequence
from typing import Final

from staticfire.harness.sync.source.report import Coverage, Finding, Report

PARTLY: Final = "carried only where the worker runs in the engine core's process"
NOT_AUDITED: Final = (
    "specifications that a worker hands on outside the configuration (block sizes and dtypes of a cache's layers); "
    "a worker that sets back what the front end settled, where a message carries the field"
)
_PLACES: Final = 5
"""Folders that a line of the coverage names."""


def render(report: Report) -> str:
    """Every finding, what is carried under some executors only, the verdict, and what was looked at."""
    partly = [f"{PARTLY}:", *map(_finding, report.partly)] if report.partly else []
    return "\n\n".join([*map(_finding, report.findings), *partly, f"{verdict(report)}\n{coverage(report.coverage)}"])


def verdict(report: Report) -> str:
    """One line."""
    number, partly = len(report.findings), len(report.partly)
    if number:
        said = f"{number} {'field does' if number == 1 else 'fields do'} not travel"
        said += f", {partly} {'is' if partly == 1 else 'are'} {PARTLY}" if partly else ""
    elif partly:
        said = f"Everything that is settled after the copy and read elsewhere is carried, {partly} of it only there"
    else:
        said = "Everything that is settled after the copy and read elsewhere travels"
    return f"{said}: {report.root}."


def coverage(seen: Coverage) -> str:
    """What was looked at, and what was not followed."""
    brought = ", ".join(f"{name} brings {count}" for name, count in seen.channels.items())
    placed = ", ".join(f"{count} {process}" for process, count in seen.placed.items())
    lines = [
        f"coverage: {seen.files} files, {seen.fields} fields of the configuration ({brought}), {seen.writes} writes",
        f"  placed: {placed or 'none'}",
    ]
    if seen.undecided:
        lines.append("  undecided: " + "; ".join(f"{why}: {count}" for why, count in seen.undecided.items()))
    lines += [f"  no product: {left.files} files of {left.kind} ({_some(left.where)})" for left in seen.left]
    lines.append(f"  not audited: {NOT_AUDITED}")
    lines += [f"  not read: {item.path}:{item.line}: {item.why}" for item in seen.unread]
    return "\n".join(lines)


def _some(places: Sequence[str]) -> str:
    more = len(places) - _PLACES
    return ", ".join(places[:_PLACES]) + (f" and {more} more" if more > 0 else "")


def _finding(finding: Finding) -> str:
    lines = [
        f"{finding.write}: {finding.field} is settled by the {finding.process}: {finding.reason}.",
        f"    read in the front end: {finding.read}",
    ]
    if finding.applied is not None:
        lines.append(f"    taken over by the client: {finding.applied}")
    if finding.sharing is not None:
        lines.append(f"    carried under {', '.join(map(str, finding.sharing.together))}")
        lines.append(f"    not where processes are started by {', '.join(map(str, finding.sharing.apart))}")
    if finding.more:
        lines.append(f"    written as well: {', '.join(map(str, finding.more))}")
    return "\n".join(lines)
