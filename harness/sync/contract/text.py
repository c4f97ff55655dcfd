"""A report for people."""

from collections.abc import Mapping
from typing import Any

from staticfire.harness.sync.contract.base import LEFT_OUT, Counterexample, Finding, Report, Said, Tried
from staticfire.harness.sync.contract.learn import UNREAD
from staticfire.harness.sync.contract.properties import MERGE, MERGE_WHY, PROPERTIES

WHY = {one.name: one.why for one in PROPERTIES} | {MERGE: MERGE_WHY}


def render(report: Report) -> str:
    """What was driven, the fields, the properties, every counterexample, the verdict."""
    about = report.about
    parts = [
        f"{about.engine}: {about.response} ({about.defined_at}), applied by {about.applies} ({about.applied_at})",
        _merges(report),
        "\n".join(_tried(one, report) for one in report.tried),
    ]
    parts += [_finding(finding, report.merges) for finding in report.findings]
    parts += [f"note: {note}" for note in report.notes]
    parts.append(verdict(report))
    return "\n\n".join(parts)


def verdict(report: Report) -> str:
    """The last line."""
    examples = sum(one.examples for one in report.tried)
    properties = f"{len(report.tried)} properties, {examples} examples"
    accepted = len(report.findings) - len(report.standing)
    more = f", {accepted} accepted" if accepted else ""
    if report.standing:
        return f"Broken: {len(report.standing)} counterexamples{more}, by {properties}."
    cut = any(one.untried for one in report.tried)
    return f"{'Holds as far as it was tried' if cut else 'Holds'}{more}: {properties}."


def _merges(report: Report) -> str:
    """What becomes of two engines' values, the fields of one kind together."""
    kinds: dict[str, list[str]] = {}
    for name, merge in report.merges.items():
        kinds.setdefault(merge, []).append(name)
    kinds.pop(UNREAD, None)
    width = max(map(len, kinds), default=0)
    rows = [f"    {kind:<{width}}  {', '.join(names)}" for kind, names in kinds.items()]
    return "\n".join(["what the front end makes of two engines, as tried:", *rows])


def _tried(one: Tried, report: Report) -> str:
    broken = [finding for finding in report.findings if finding.rule == one.rule]
    many = "the whole response" if one.whole else f"{one.fields} fields"
    mark = f"{len(broken)} broken" if broken else "holds"
    lines = [f"{one.rule}: {mark} ({many}, {one.examples} examples)", f"    {one.statement}"]
    for refused in one.refused:
        silent = "" if refused.names_a_field else ", which names no field"
        lines.append(f"    some are refused, as with {refused.error!r}{silent}: {', '.join(refused.fields)}")
    lines += [f"    by a rule, {name}: {why}" for name, why in one.declared.items()]
    lines += [f"    not tried to the end, {name}: {why}" for name, why in one.untried.items()]
    return "\n".join(lines)


def _finding(finding: Finding, merges: Mapping[str, str]) -> str:
    example = finding.example
    head = f"{finding.where}: {finding.rule}: {finding.field or 'the response'}"
    if finding.field is not None and finding.field in merges:
        head += f" ({merges[finding.field]})"
    if finding.accepted is not None:
        return f"{head}\n    accepted: {finding.accepted}"
    return "\n".join([head, *story(example), f"    {WHY[finding.rule]}"])


def story(example: Counterexample) -> list[str]:
    """What happens, line by line."""
    lines = [f"    the user typed {path} = {value!r}" for path, value in example.typed.items()]
    lines += [f"    engine {engine} {_says(values)}" for engine, values in example.messages]
    if example.error is not None:
        lines.append(f"    it ends with: {example.error}")
    for path, value in example.ends.items():
        lines.append(f"    the front end ends with {path} = {value!r}; {example.when}: {example.otherwise[path]!r}")
    if not example.ends and example.error is None:
        lines.append(f"    {example.when}")
    return lines


def _says(values: Mapping[str, Any]) -> str:
    said = [f"{name} = {value!r}" for name, value in values.items() if value != LEFT_OUT]
    out = [name for name, value in values.items() if value == LEFT_OUT]
    parts = [f"says {', '.join(said)}"] if said else []
    parts += [f"leaves out {', '.join(out)}"] if out else []
    return " and ".join(parts) or "answers"


def as_json(report: Report) -> dict[str, Any]:
    """The versioned form for machines (`docs/schemas/sync-contract.json`)."""
    about = report.about
    return {
        "schema": 1,
        "engine": about.engine,
        "response": {"name": about.response, "at": about.defined_at},
        "applied": {"name": about.applies, "at": about.applied_at},
        "holds": not report.standing,
        "fields": [
            {"field": one.name, "merge": report.merges.get(one.name), "reaches": list(report.targets.get(one.name, ()))}
            for one in about.fields
        ],
        "properties": [_property(one) for one in report.tried],
        "findings": [_as_finding(finding) for finding in report.findings],
        "notes": list(report.notes),
    }


def _property(one: Tried) -> dict[str, Any]:
    return {
        "name": one.rule,
        "statement": one.statement,
        "fields": one.fields,
        "examples": one.examples,
        "refused": [{"error": refused.error, "fields": list(refused.fields)} for refused in one.refused],
        "by_rule": [{"field": name, "reason": why} for name, why in one.declared.items()],
        "untried": [{"field": name, "reason": why} for name, why in one.untried.items()],
    }


def _as_finding(finding: Finding) -> dict[str, Any]:
    example, (path, _, line) = finding.example, finding.where.rpartition(":")
    return {
        "property": finding.rule,
        "field": finding.field,
        "path": path,
        "line": int(line),
        "reason": WHY[finding.rule],
        "typed": dict(example.typed),
        "messages": [_message(said) for said in example.messages],
        "ends": dict(example.ends),
        "otherwise": dict(example.otherwise),
        "when": example.when,
        "error": example.error,
        "accepted": finding.accepted,
    }


def _message(said: Said) -> dict[str, Any]:
    engine, values = said
    out = [name for name, value in values.items() if value == LEFT_OUT]
    return {"engine": engine, "says": {k: v for k, v in values.items() if k not in out}, "leaves_out": out}
