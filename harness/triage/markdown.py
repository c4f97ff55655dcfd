"""An annotation for Buildkite: root causes, not tests, and under its limit of bytes however much failed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from staticfire.harness.check.formats.buildkite import escape
from staticfire.harness.check.messages import one_line, printable
from staticfire.harness.pipeline.limits import ANNOTATION_BYTES
from staticfire.harness.triage.base import Failure, Group, Triage, plural

Style = Literal["success", "info", "warning", "error"]
MAX_FAILURES: Final = 50
"""Failures listed for one cause."""
_RESERVE: Final = 512
"""For the line that says what did not fit."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a matrix or suite has reported.

    Attributes:
        title: Its name.
        reported: Shards of which there is a report.
        expected: Shards that there are.
        final: Whether no more will come: what has not reported by now never will.
    """

    title: str
    reported: int
    expected: int
    final: bool = False

    @property
    def missing(self) -> int:
        """Shards without a report."""
        return max(0, self.expected - self.reported)


def style(triage: Triage, progress: Progress) -> Style:
    """How grave it is. A shard that never reported is as bad as one that failed."""
    if any(group.kind == "product" for group in triage.groups) or (progress.final and progress.missing):
        return "error"
    if triage.groups:
        return "warning"
    return "info" if progress.missing else "success"


def render(triage: Triage, progress: Progress, most: int = ANNOTATION_BYTES) -> str:
    """The annotation, at most so many bytes; the heading with all counts is always in it."""
    head = _head(triage, progress)
    parts, left = [head], most - _RESERVE - len(head.encode())
    dropped = failures = 0
    for group in triage.groups:
        block = _fitting(group, left)
        if block is None:
            dropped += 1
            failures += len(group.failures)
            continue
        parts.append(block)
        left -= len(block.encode()) + 1
    if dropped:
        parts.append(
            f"{plural(dropped, 'more cause')} ({plural(failures, 'failure')}) did not fit into an annotation.\n"
        )
    return "\n".join(parts)


def _head(triage: Triage, progress: Progress) -> str:
    title = escape(one_line(progress.title, 120))
    lines = [f"**{title}: {escape(triage.last_line)}**"]
    if progress.missing and progress.final:
        lines.append(
            f"\n{plural(progress.missing, 'shard')} of {progress.expected} never reported: not everything ran."
        )
    elif progress.missing:
        lines.append(f"\n{progress.reported} of {plural(progress.expected, 'shard')} reported so far.")
    return "\n".join(lines) + "\n"


def _fitting(group: Group, left: int) -> str | None:
    """The block of a group with as many failures as fit; None where not even its heading does."""
    for shown in (MAX_FAILURES, 5, 0):
        block = _group(group, shown)
        if len(block.encode()) < left:
            return block
    return None


def _group(group: Group, most: int) -> str:
    opened = " open" if group.kind == "product" and group.new is not False else ""
    news = {True: " (new)", False: " (known)", None: ""}[group.new]
    title = group.rule or one_line(group.title, 200)
    count = plural(len(group.failures), "failure")
    summary = f"<b>{escape(title)}</b> {group.kind}, {count}{news}"
    lines = [f"<details{opened}><summary>{summary}</summary>", "", *_facts(group), ""]
    lines += [_failure(failure) for failure in group.failures[:most]]
    if len(group.failures) > most:
        lines.append(f"- and {plural(len(group.failures) - most, 'more failure')}")
    return "\n".join([*lines, "", "</details>", ""])


def _facts(group: Group) -> Iterator[str]:
    if group.rule:
        yield f"{escape(one_line(group.title))}<br>"
    if group.why:
        yield f"why: {escape(one_line(group.why))}<br>"
    if group.repair:
        yield f"fix{' (the engine accepts it)' if group.verified else ''}: {escape(one_line(group.repair))}<br>"
    if group.sites:
        shown = ", ".join(f"<code>{escape(one_line(site, 160))}</code>" for site in group.sites[:5])
        more = f" and {len(group.sites) - 5} more" if len(group.sites) > 5 else ""
        yield f"check finds it at: {shown}{more}<br>"


def _failure(failure: Failure) -> str:
    link = ""
    if failure.report and not failure.report.startswith("/"):
        link = f' <a href="artifact://{escape(failure.report)}">report</a>'
    again = f": <code>{escape(one_line(failure.rerun, 400))}</code>" if failure.rerun else ""
    return f"- <code>{escape(one_line(printable(failure.id), 200))}</code>{again}{link}"
