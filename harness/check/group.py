"""Observations -> findings: one for each root cause and repair, with every site that has it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from staticfire.harness.check.base import Certainty, Finding, Level, Place, Repair
from staticfire.harness.check.fingerprint import fingerprint
from staticfire.harness.check.messages import clean, one_line
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.repair import Repairs, choose
from staticfire.harness.scan.base import Site

LEVELS: dict[Level, int] = {"error": 0, "warning": 1, "note": 2}
MAX_ALTERNATIVES = 3
REPAIRED = frozenset({"refused"})
"""Kinds for which a repair is searched."""

Totals = dict[tuple[str, int, int, str], int]


def site_key(site: Site) -> tuple[str, int, int, str]:
    """Names a site in one scan."""
    return (site.where.path, site.where.line, site.where.column, site.form)


def findings(
    observations: Iterable[Observation],
    totals: Totals,
    repairs: Repairs,
    chain: Callable[[Observation], tuple[str, ...]],
) -> list[Finding]:
    """Group what was observed.

    Args:
        observations: In any order; the result does not depend on it.
        totals: `site_key` -> cases of the site that run.
        repairs: Searches repairs.
        chain: Says how the values of a refusal came about.

    Returns:
        Certain findings first, then by gravity, number of sites and place.
    """
    causes: dict[tuple[str, str, str, str], list[Observation]] = {}
    for one in sorted(observations, key=lambda one: one.order):
        causes.setdefault(one.cause, []).append(one)
    found = []
    # What is certain, and then what is frequent, has its repair searched first: the search is bounded.
    for cause in sorted(causes, key=lambda cause: (_certain(causes[cause]) == 0, -len(causes[cause]), cause)):
        for alternatives, members in _by_repair(causes[cause], repairs):
            made = _finding(members, alternatives, totals, chain)
            found.append(made if alternatives else replace(made, searched=_tried(members, repairs)))
    return order(found)


def _tried(members: Sequence[Observation], repairs: Repairs) -> str:
    """What was tried in vain; of the fullest search, if the members had several."""
    searches = dict.fromkeys(filter(None, map(repairs.tried, members)))
    return next(iter(searches), "")


def _certain(members: Iterable[Observation]) -> int:
    return sum(not one.why for one in members)


def order(found: Iterable[Finding]) -> list[Finding]:
    """Certain findings first, then by gravity, number of sites and place."""

    def key(finding: Finding) -> tuple[object, ...]:
        first = finding.sites[0]
        return (
            finding.certainty != "certain",
            LEVELS[finding.facts.level],
            -len(finding.sites),
            first.path,
            first.line,
            first.column,
            finding.kind,
            finding.message,
            [change.key for change in finding.repair or ()],
        )

    return sorted(found, key=key)


def _by_repair(members: Sequence[Observation], repairs: Repairs) -> list[tuple[tuple[Repair, ...], list[Observation]]]:
    """Split the cases of one cause by the repair chosen for them; its alternatives mend every case of a part, too."""
    if members[0].kind not in REPAIRED:
        given: dict[tuple[Repair, ...], list[Observation]] = {}
        for one in members:
            given.setdefault(one.repairs, []).append(one)
        return list(given.items())
    found = repairs.of_cause(members)
    chosen = choose(found, {one.subject: one for one in members if one.subject in found})
    parts: dict[Repair | None, list[Observation]] = {}
    for one in members:
        parts.setdefault(chosen.get(one.subject), []).append(one)
    result: list[tuple[tuple[Repair, ...], list[Observation]]] = []
    for repair in sorted(parts, key=lambda repair: [change.key for change in repair or ()]):
        part = parts[repair]
        common = [other for other in found.get(part[0].subject, ()) if all(other in found[one.subject] for one in part)]
        others = _unlike(repair, common)[:MAX_ALTERNATIVES] if repair else []
        result.append(((repair, *others) if repair else (), part))
    return result


def _unlike(repair: Repair, others: Iterable[Repair]) -> list[Repair]:
    """Repairs that differ from one, and from each other, in more than a figure."""
    shapes = [_shape(repair)]
    found = []
    for other in others:
        if _shape(other) not in shapes:
            shapes.append(_shape(other))
            found.append(other)
    return found


def _shape(repair: Repair) -> list[object]:
    figure = [isinstance(change.value, int | float) and not isinstance(change.value, bool) for change in repair]
    return [
        (change.keyword, change.drop, change.old, None if number else repr(change.value))
        for change, number in zip(repair, figure, strict=True)
    ]


def _finding(
    members: Sequence[Observation],
    alternatives: tuple[Repair, ...],
    totals: Totals,
    chain: Callable[[Observation], tuple[str, ...]],
) -> Finding:
    ranked = sorted(members, key=lambda one: (bool(one.why), one.order))
    first = ranked[0]
    sites: dict[tuple[str, int, int, str], list[Observation]] = {}
    for one in members:
        sites.setdefault(site_key(one.case.site), []).append(one)
    places = [_place(sites[key], totals.get(key, len(sites[key]))) for key in sorted(sites)]
    return Finding(
        kind=first.kind,
        certainty=certainty(places),
        message=clean(first.message),
        origin=first.origin,
        phase=first.phase,
        chain=first.told or chain(first),
        rules=tuple(dict.fromkeys(rule for one in members for rule in one.rules)),
        repairs=alternatives,
        sites=tuple(places),
    )


def certainty(places: Iterable[Place]) -> Certainty:
    """Certain if it is at one site at least."""
    return "certain" if any(place.certainty == "certain" for place in places) else "possible"


def _place(members: Sequence[Observation], total: int) -> Place:
    certain = [one for one in members if not one.why]
    shown = certain or members
    site = members[0].case.site
    where = site.where
    why = dict.fromkeys(reason for one in shown for reason in one.why)
    guards = dict.fromkeys(
        f"if this test runs: {one_line(guard.text, 160)}" for one in shown for guard in one.case.guards
    )
    labels = tuple(dict.fromkeys(one.case.label for one in members if one.case.label))
    return Place(
        path=where.path,
        line=where.line,
        column=where.column,
        end_line=where.end_line or where.line,
        end_column=where.end_column,
        function=site.function,
        form=site.form,
        certainty="certain" if certain else "possible",
        why=tuple(one_line(reason, 200) for reason in (*why, *guards)),
        params=labels,
        total=total,
        tried=total - site.truncated,
        models=tuple(sorted({one.model for one in members if one.model})),
        fingerprint=fingerprint(members[0]),
        cases=len({(one.case.params, one.case.caller, one.order) for one in members}),
    )


def with_sites(finding: Finding, sites: Iterable[Place]) -> Finding | None:
    """The finding at some of its sites; None where none is left."""
    kept = tuple(sites)
    return replace(finding, sites=kept, certainty=certainty(kept)) if kept else None
