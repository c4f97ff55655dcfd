"""Lay views side by side: the engine cores are right by definition, for what they have is in force."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from staticfire.engine.view import Plain, View
from staticfire.harness.sync.base import Audit, Finding, Held, Kind, Road, Seen

NO_ROAD: Final = "no report carries it"


class _Missing:
    """Stands for a field that a holder lacks."""


MISSING: Final = _Missing()
_Value = Plain | _Missing


@dataclass(frozen=True, slots=True)
class _Claim:
    """A holder, what it has, and what it should have."""

    holder: str
    has: _Value
    due: _Value

    @property
    def right(self) -> bool:
        return _equal(self.has, self.due)


def audit(seen: Seen, subject: str) -> Audit:
    """Compare every field of every view.

    Args:
        seen: What a live engine showed.
        subject: What was audited, in words.
    """
    cores = {view.engine: view for view in seen.views if view.role == "engine core" and view.engine is not None}
    names = list(dict.fromkeys(name for view in (*cores.values(), *seen.views) for name in view.fields))
    found = [_field(name, seen, cores) for name in names]
    return Audit(
        engine=seen.engine,
        subject=subject,
        holders=tuple(view.holder for view in seen.views),
        fields=len(names),
        findings=(*seen.misdeclared, *(finding for finding in found if finding is not None)),
        notes=seen.notes,
    )


def _field(name: str, seen: Seen, cores: Mapping[int, View]) -> Finding | None:
    road = seen.roads.get(name)
    claims = [_claim(name, view, cores, road) for view in seen.views if _speaks_of(name, view)]
    wrong = [claim for claim in claims if not claim.right]
    silent = tuple(engine for engine, fields in seen.unreported.items() if name in fields)
    if not wrong and not silent and _engines_agree(name, cores, road):
        return None
    return Finding(
        kind=_kind(wrong, silent),
        field=name,
        message=_message(name, claims, wrong, silent),
        held=_held(claims),
        travels=_travels(name, seen),
    )


def _speaks_of(name: str, view: View) -> bool:
    """Whether a holder is meant to have the field at all: metrics show the cache and nothing else."""
    return view.role != "metrics" or name.startswith(("cache.", "runtime."))


def _claim(name: str, view: View, cores: Mapping[int, View], road: Road | None) -> _Claim:
    has = view.fields.get(name, MISSING)
    if view.engine is not None:
        due = cores[view.engine].fields.get(name, MISSING) if view.engine in cores else MISSING
        if view.role == "metrics":
            has, due = _shown(name, view, cores, has, due)
    else:
        due = _merged([core.fields.get(name, MISSING) for core in cores.values()], road, has)
    return _Claim(view.holder, has, due)


def _shown(name: str, view: View, cores: Mapping[int, View], has: _Value, due: _Value) -> tuple[_Value, _Value]:
    """A label shows the run-time value where section and run time share a name, and is left out for None."""
    section, _, label = name.partition(".")
    core = cores.get(view.engine) if view.engine is not None else None
    if section == "cache" and core is not None and f"runtime.{label}" in core.fields:
        return due, due
    return (None if isinstance(has, _Missing) and due is None else has), due


def _merged(values: Sequence[_Value], road: Road | None, has: _Value) -> _Value:
    """What the front end should have, given what the engines have."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if len(values) == 1 or _all_equal(values):
        if road is not None and road.merge == "sum_over_engines" and len(numbers) == len(values):
            return sum(numbers)
        return values[0] if values else has
    if road is not None and len(numbers) == len(values):
        if road.merge == "minimum":
            return min(numbers)
        if road.merge == "sum_over_engines":
            return sum(numbers)
    return has  # nothing can be due: the engines may differ, or `_engines_agree` reports that they must not


def _engines_agree(name: str, cores: Mapping[int, View], road: Road | None) -> bool:
    """Whether the engines have one value, where their differing is no part of the field's meaning."""
    free = road is not None and road.merge != "must_agree"
    return free or _all_equal([core.fields.get(name, MISSING) for core in cores.values()])


def _all_equal(values: Sequence[_Value]) -> bool:
    return all(_equal(value, values[0]) for value in values[1:])


def _equal(one: _Value, other: _Value) -> bool:
    """Equal in value and, so that True is not 1, in kind; 4 and 4.0 are one number."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _travels(name: str, seen: Seen) -> str:
    """How the value should have reached everyone."""
    if name in seen.roads:
        return seen.roads[name].by
    return f"{NO_ROAD}: {seen.stays[name]}" if name in seen.stays else NO_ROAD


def _kind(wrong: Iterable[_Claim], silent: tuple[int, ...]) -> Kind:
    if silent:
        return "not-sent"
    return "missing" if any(isinstance(claim.has, _Missing) for claim in wrong) else "differs"


def _message(name: str, claims: Sequence[_Claim], wrong: Sequence[_Claim], silent: tuple[int, ...]) -> str:
    parts = [f"engine {engine} did not report it" for engine in silent]
    parts += [f"{claim.holder} {_says(claim.has)}, should have {_show(claim.due)}" for claim in wrong]
    if not parts:
        parts.append(", ".join(f"{claim.holder} {_says(claim.has)}" for claim in claims if "core" in claim.holder))
    return f"{name}: {'; '.join(parts)}"


def _says(value: _Value) -> str:
    return "lacks it" if isinstance(value, _Missing) else f"has {_show(value)}"


def _show(value: _Value) -> str:
    return "nothing" if isinstance(value, _Missing) else repr(value)


def _held(claims: Sequence[_Claim]) -> tuple[Held, ...]:
    """Group holders by value, the engine cores' first."""
    groups: dict[tuple[bool, str], list[_Claim]] = {}
    for claim in sorted(claims, key=lambda claim: not claim.holder.startswith("engine core")):
        groups.setdefault((isinstance(claim.has, _Missing), repr(claim.has)), []).append(claim)
    held = []
    for group in groups.values():
        value, holders = group[0].has, tuple(claim.holder for claim in group)
        held.append(Held(holders, present=False) if isinstance(value, _Missing) else Held(holders, value))
    return tuple(held)
