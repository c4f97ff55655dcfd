"""How the answers of several engines become one, field by field of the table.

The first engine speaks for all until another one differs. Where it does not, which is the rule, a whole group of fields
is settled by one comparison.
"""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import asdict

from staticfire.engine.ready.errors import ReadyError
from staticfire.engine.ready.response import TABLE, Merge, ReadyResponse

Values = dict[str, Any]
"""Field of the ready response -> value."""


def _group(merge: Merge) -> tuple[str, ...]:
    return tuple(name for name, travels in TABLE.items() if travels.merge is merge)


AGREED: Final = _group(Merge.MUST_AGREE)
RESOLVED: Final = _group(Merge.AS_RESOLVED)
ADDED: Final = _group(Merge.SUM_OVER_ENGINES)
LEAST: Final = _group(Merge.MINIMUM)
KEPT: Final = ("engine_index", *_group(Merge.PER_ENGINE))
_agreed: Final = attrgetter(*AGREED)
_resolved: Final = attrgetter(*RESOLVED)


def told(response: ReadyResponse) -> Values:
    """What an engine reported, None included."""
    values = asdict(response)
    if UNSET in values.values():
        return {name: value for name, value in values.items() if value is not UNSET}
    return values


def merge(
    responses: Sequence[ReadyResponse], answers: Mapping[int, Values], resolved: tuple[Any, ...], bounds: Sequence[Any]
) -> Values:
    """Make the front end's values out of the engines'.

    Args:
        responses: One answer of each engine; at least one.
        answers: Engine index -> what it reported, in the same order.
        resolved: The front end's values of the fields `RESOLVED`.
        bounds: The front end's values of the fields `LEAST`; None where it has none.

    Returns:
        What the front end takes over: every reported field that is not each engine's own.

    Raises:
        ReadyError: Engines disagree, or one answers what was not resolved.
    """
    first, *others = responses
    merged = dict(answers[first.engine_index])
    for name in KEPT:
        merged.pop(name, None)
    agreed = _agreed(first)
    for response in responses:
        if _resolved(response) != resolved:
            _hold_resolved(answers, resolved)
    for other in others:
        answer = answers[other.engine_index]
        if _agreed(other) != agreed:
            _agree(merged, answers)
        for name in ADDED:
            if name in answer:
                merged[name] = merged.get(name, 0) + answer[name]
        for name in LEAST:
            if name in answer:
                merged[name] = min(merged.get(name, answer[name]), answer[name])
    for name, bound in zip(LEAST, bounds, strict=True):
        if name in merged and bound is not None:
            merged[name] = min(merged[name], bound)
    return merged


def _said(name: str, answers: Mapping[int, Values]) -> dict[int, Any]:
    """Engine index -> value, of those who have something to say."""
    return {index: answer[name] for index, answer in answers.items() if answer.get(name) is not None}


def _agree(merged: Values, answers: Mapping[int, Values]) -> None:
    """Look at each field: nobody's None and nobody's silence takes a value away."""
    for name in AGREED:
        said = _said(name, answers)
        if len(set(said.values())) > 1:
            raise ReadyError(f"{name}: the engines disagree: {_who(said)}; all must settle on one value")
        if said:
            merged[name] = next(iter(said.values()))
        elif any(name in answer for answer in answers.values()):
            merged[name] = None


def _hold_resolved(answers: Mapping[int, Values], resolved: tuple[Any, ...]) -> None:
    for name, wanted in zip(RESOLVED, resolved, strict=True):
        other = {index: value for index, value in _said(name, answers).items() if value != wanted}
        if other:
            raise ReadyError(f"{name}: {_who(other)}, but {wanted!r} was resolved")


def _who(values: dict[int, Any]) -> str:
    """`engines 0 and 2 have 80, engine 1 has 96`."""
    holders: dict[Any, list[str]] = {}
    for index, value in values.items():
        holders.setdefault(value, []).append(str(index))
    return ", ".join(
        f"engine {who[0]} has {value!r}" if len(who) == 1 else f"engines {' and '.join(who)} have {value!r}"
        for value, who in holders.items()
    )
