"""An audit for people."""

from itertools import groupby

from staticfire.engine.view import Plain
from staticfire.harness.sync.base import Audit, Finding, Held


def render(audit: Audit) -> str:
    """The whole audit: what was compared, every finding, the verdict."""
    parts = [f"{audit.engine}, {audit.subject}\ncompared: {', '.join(audit.holders)}"]
    parts += [_finding(finding) for finding in audit.findings]
    parts += [f"note: {note}" for note in audit.notes]
    parts.append(verdict(audit))
    return "\n\n".join(parts)


def verdict(audit: Audit) -> str:
    """The last line."""
    if not audit.findings:
        return f"In step: {audit.fields} fields, {len(audit.holders)} holders."
    fields = len(list(groupby(audit.findings, key=lambda finding: finding.field)))
    return f"Out of step: {fields} of {audit.fields} fields."


def _finding(finding: Finding) -> str:
    lines = [finding.message if finding.where is None else f"{finding.where}: {finding.message}"]
    shown = [_shown(held) for held in finding.held]
    width = max(map(len, shown), default=0)
    lines += [f"    {text:>{width}}  {', '.join(held.holders)}" for text, held in zip(shown, finding.held, strict=True)]
    if finding.travels:
        lines.append(f"    travels by: {finding.travels}")
    return "\n".join(lines)


def _shown(held: Held) -> str:
    return _plain(held.value) if held.present else "(lacking)"


def _plain(value: Plain) -> str:
    return value if isinstance(value, str) else repr(value)
