"""Triage for a terminal, and as JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict

from staticfire.harness.check.messages import one_line
from staticfire.harness.triage.base import Group, Triage, plural

SCHEMA = 1
MAX_SHOWN = 5


def render(triage: Triage) -> str:
    """The text: what is new and what most fails because of, first."""
    lines: list[str] = []
    for group in triage.groups:
        lines += [*_group(group), ""]
    if triage.resolved:
        lines += [f"gone since the baseline: {plural(len(triage.resolved), 'cause')}", ""]
    return "\n".join([*lines, triage.last_line]) + "\n"


def document(triage: Triage) -> str:
    """JSON; docs/schemas/triage.json describes it."""
    made = {
        "schema": SCHEMA,
        "cases": triage.cases,
        "reports": triage.reports,
        "failures": triage.failures,
        "groups": [asdict(group) for group in triage.groups],
        "resolved": list(triage.resolved),
        "summary": triage.last_line,
    }
    return json.dumps(made, indent=1) + "\n"


def _group(group: Group) -> Iterator[str]:
    news = {True: " (new)", False: " (known)", None: ""}[group.new]
    yield f"{group.kind}: {plural(len(group.failures), 'failure')}{news}: {group.rule or one_line(group.title)}"
    if group.rule:
        yield f"  {one_line(group.title)}"
    if group.why:
        yield f"  why: {one_line(group.why)}"
    if group.repair:
        yield f"  fix{' (the engine accepts it)' if group.verified else ''}: {one_line(group.repair)}"
    yield f"  failed: {_some([failure.id for failure in group.failures])}"
    if group.sites:
        yield f"  check finds it at: {_some(group.sites)}"
    again = next((failure.rerun for failure in group.failures if failure.rerun), "")
    if again:
        yield f"  alone: {one_line(again)}"


def _some(names: "tuple[str, ...] | list[str]") -> str:
    shown = [one_line(name, 160) for name in names[:MAX_SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")
