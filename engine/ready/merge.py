"""How the answers of several engines become one, field by field of the table.

Where all engines say the same, which is the rule, a whole group of fields is settled by one comparison; only where they
differ are fields looked at one by one.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any, Final

from msgspec import UNSET
from msgspec.structs import asdict

from staticfire.engine.ready.errors import ReadyError
from staticfire.engine.ready.response import TABLE, Merge, ReadyResponse

Values = dict[str, Any]
"""Field of the ready response -> value."""


def _group(*merges: Merge) -> tuple[str, ...]:
    return tuple(name for merge in merges for name, travels in TABLE.items() if travels.merge is merge)


AGREED: Final = _group(Merge.MUST_AGREE)
RESOLVED: Final = _group(Merge.AS_RESOLVED)
LEAST: Final = _group(Merge.MINIMUM)
NUMBERS: Final = (*LEAST, *_group(Merge.SUM_OVER_ENGINES))
_agreed: Final = attrgetter(*AGREED)
_resolved: Final = attrgetter(*RESOLVED)
_numbers: Final = attrgetter(*NUMBERS)


def told(response: ReadyResponse) -> Values:
    """What an engine reported, None included."""
    values = asdict(response)
    if UNSET in values.values():
        return {name: value for name, value in values.items() if value is not UNSET}
    return values


def merge(responses: Sequence[ReadyResponse], resolved: tuple[Any, ...], bounds: Sequence[Any]) -> Values:
    """Make the front end's values out of the engines'.

    Args:
        responses: One answer of each engine; at least one.
        resolved: The front end's values of the fields `RESOLVED`.
        bounds: The front end's values of the fields `LEAST`.

    Returns:
        Every reported field that the front end takes over: not what is as resolved, nor what is each engine's own.

    Raises:
        ReadyError: Engines disagree, or one answers what was not resolved.
    """
    _hold_resolved(responses, resolved)
    merged = _settle_agreed(responses)
    columns = zip(*map(_numbers, responses), strict=True)
    for name, values, bound in zip_longest(NUMBERS, columns, bounds):
        said = [value for value in values if value is not UNSET] if UNSET in values else values
        if said:
            merged[name] = sum(said) if bound is None else min(bound, *said)
    return merged


def _said(name: str, responses: Sequence[ReadyResponse]) -> Iterator[tuple[int, Any]]:
    """(engine index, value) of those who have something to say."""
    for response in responses:
        value = getattr(response, name)
        if value is not UNSET and value is not None:
            yield response.engine_index, value


def _settle_agreed(responses: Sequence[ReadyResponse]) -> Values:
    groups = list(map(_agreed, responses))
    if UNSET not in groups[0] and groups.count(groups[0]) == len(groups):
        return dict(zip(AGREED, groups[0], strict=True))
    merged: Values = {}
    for name in AGREED:
        said = dict(_said(name, responses))
        if len(set(said.values())) > 1:
            raise ReadyError(f"{name}: the engines disagree: {_who(said)}; all must settle on one value")
        if said:
            merged[name] = next(iter(said.values()))
        elif any(getattr(response, name) is None for response in responses):
            merged[name] = None
    return merged


def _hold_resolved(responses: Sequence[ReadyResponse], resolved: tuple[Any, ...]) -> None:
    groups = list(map(_resolved, responses))
    if groups.count(resolved) == len(groups):
        return
    for name, wanted in zip(RESOLVED, resolved, strict=True):
        other = {index: value for index, value in _said(name, responses) if value != wanted}
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
