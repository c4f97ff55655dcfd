"""`--format json`: everything, for programs. The schema is docs/schemas/check.json."""

from dataclasses import asdict
from typing import Any

from staticfire.harness.check.base import Coverage, Finding, Place, Report
from staticfire.harness.check.formats.base import dumped

NAME = "json"
LAST_LINE = False
SCHEMA = 1
"""Raised when a reader of the former schema would misread the document; new optional keys do not raise it."""


def render(report: Report) -> str:
    """The document: indented, ending in a newline."""
    return dumped(as_json(report))


def as_json(report: Report) -> dict[str, Any]:
    """The document as plain values."""
    return {
        "schema": SCHEMA,
        "engine": report.engine,
        "device": report.device,
        "findings": [_finding(finding) for finding in report.findings],
        "coverage": _coverage(report.coverage),
        "silenced": [
            {"how": one.how, "reason": one.reason, "finding": _finding(one.finding)} for one in report.silenced
        ],
        "stale_baseline_entries": len(report.stale),
        "stale_baseline": list(report.stale),
        "summary": report.last_line,
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "certainty": finding.certainty,
        "kind": finding.kind,
        "code": finding.facts.code,
        "level": finding.level,
        "message": finding.message,
        "origin": finding.origin or None,
        "phase": finding.phase or None,
        "rules": list(finding.rules),
        "chain": list(finding.chain),
        "repair": [change.as_json() for change in finding.repairs[0]] if finding.repairs else None,
        "alternatives": [[change.as_json() for change in repair] for repair in finding.repairs[1:]],
        "repair_search": finding.searched or None,
        "sites": [_site(place) for place in finding.sites],
    }


def _site(place: Place) -> dict[str, Any]:
    return {
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "params": list(place.params),
        "parameter_sets": place.total,
        "concerned": min(place.cases, place.total),
        "tried": place.tried or place.total,
        "models": list(place.models),
        "function": place.function or None,
        "form": place.form,
        "certainty": place.certainty,
        "why": list(place.why),
        "fingerprint": place.fingerprint,
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    document = asdict(coverage)
    document["by_form"] = {form: asdict(figures) for form, figures in coverage.by_form.items()}
    document["by_reason"] = dict(coverage.by_reason)
    document["unread"] = list(coverage.unread)
    document["not_known"] = {part: dict(reasons) for part, reasons in coverage.not_known.items()}
    return document
