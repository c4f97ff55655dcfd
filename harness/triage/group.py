"""Failures with one cause in one group, with the rule, what mends it and where else it is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from staticfire.harness.check.base import Report, spell
from staticfire.harness.triage.base import Failure, Group, Seen, Triage
from staticfire.harness.triage.causes import WRAPPERS, Cause, cause, headline, unraised
from staticfire.harness.triage.repair import of_cell
from staticfire.harness.triage.words import rule_of


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """What the catalogue says of a rule.

    Attributes:
        name: Readable.
        summary: One line.
        fix: What mends it, in words.
        usual: What mends its example: keyword -> value, None to drop it.
    """

    name: str
    summary: str
    fix: str
    usual: Mapping[str, Any] = field(default_factory=dict)


def triage(
    seen: Sequence[Seen],
    rules: Callable[[str], RuleFacts | None],
    checked: Report | None = None,
    baseline: Iterable[str] | None = None,
) -> Triage:
    """Group failures.

    Args:
        seen: What was read.
        rules: Says what is known of the code of a rule.
        checked: What `check` found in the sources; gives verified repairs and other sites.
        baseline: Keys of an earlier build's groups.
    """
    by_key: dict[str, tuple[Cause, list[Failure]]] = {}
    for failure in _distinct(failure for one in seen for failure in one.failures):
        found = cause(failure.message, failure.rule)
        by_key.setdefault(found.key, (found, []))[1].append(failure)
    known = None if baseline is None else set(baseline)
    groups = [_group(found, failures, rules, checked) for found, failures in by_key.values()]
    if known is not None:
        groups = [replace(group, new=group.key not in known) for group in groups]
    groups.sort(key=lambda group: (group.kind != "product", group.new is False, -len(group.failures), group.key))
    gone = tuple(sorted((known or set()) - set(by_key)))
    return Triage(tuple(groups), sum(one.cases for one in seen), len(seen), gone)


def _distinct(failures: Iterable[Failure]) -> list[Failure]:
    """Each test once, though its log and its report both tell of it.

    The report knows more of it, and only the log may know why an engine died.
    """
    best: dict[tuple[str, str], Failure] = {}
    every = list(failures)
    explained = {failure.id for failure in every if not WRAPPERS.search(failure.message)}
    for failure in every:
        if failure.id in explained and WRAPPERS.search(failure.message):
            continue
        key = (failure.id, cause(failure.message, failure.rule).key)
        former = best.get(key)
        if former is None or (former.line and not failure.line):
            best[key] = failure
    return list(best.values())


def _group(
    found: Cause, failures: Sequence[Failure], rules: Callable[[str], RuleFacts | None], checked: Report | None
) -> Group:
    title = headline(failures[0].message) or failures[0].id
    if found.infrastructure:
        return Group(found.key, "infrastructure", f"{found.infrastructure}: {title}", tuple(failures))
    facts = rules(found.rule) if found.rule else None
    rule = f"{found.rule} {facts.name}" if facts else found.rule
    made = Group(
        key=found.key,
        kind="product",
        title=title.removeprefix(f"{rule}: "),
        failures=tuple(failures),
        rule=rule,
        why=facts.summary if facts else "",
        repair=facts.fix if facts else "",
    )
    if checked is not None:
        made = _checked(made, found, checked)
    return made if made.verified or not facts else _mended(made, facts)


def _mended(group: Group, facts: RuleFacts) -> Group:
    """The group with a repair that was tried on its first cell, where it has one."""
    cell = next((failure for failure in group.failures if failure.cell), None)
    repair = of_cell(cell, facts.usual) if cell is not None else ""
    return replace(group, repair=repair, verified=True) if repair else group


def _checked(group: Group, found: Cause, report: Report) -> Group:
    """The group with the sites of the findings that have the same cause, and the repair that was verified there."""
    words = unraised(group.failures[0].message)
    same = [
        finding
        for finding in report.findings
        if (found.rule and found.rule in {*finding.rules, rule_of(finding.message)})
        or (words and unraised(finding.message) == words)
    ]
    repairs = next((finding.repairs for finding in same if finding.repairs), ())
    sites = tuple(dict.fromkeys(str(place) for finding in same for place in finding.sites))
    if not repairs:
        return replace(group, sites=sites)
    return replace(group, sites=sites, repair=", or ".join(spell(one) for one in repairs), verified=True)


def keys(document: Mapping[str, object]) -> tuple[str, ...] | None:
    """Keys of the groups in what `triage --format json` printed for an earlier build; None where it is not that."""
    groups = document.get("groups")
    if not isinstance(groups, list) or not all(isinstance(group, dict) and "key" in group for group in groups):
        return None
    return tuple(str(group["key"]) for group in groups)
