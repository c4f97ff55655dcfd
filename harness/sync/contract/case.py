"""One example of a property, how it is drawn, and what is shown of one that does not hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hypothesis import strategies as st

from staticfire.harness.sync.contract.base import Counterexample, Field, Said, State
from staticfire.harness.sync.contract.draw import drawable, values
from staticfire.harness.sync.contract.learn import Learnt

MOST_MORE: Final = 2
"""How many further fields an example has out of the ordinary."""


@dataclass(frozen=True, slots=True)
class Case:
    """One example.

    Attributes:
        said: What each engine says in the field that is looked at.
        more: What all engines say out of the ordinary in further fields.
        typed: What the user typed.
        extra: Fields that no declared response has.
    """

    said: tuple[Any, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    typed: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Judged:
    """What a property says of one case.

    Attributes:
        fault: What does not hold; None where it holds.
        refused: What the front end refused, loudly.
        declared: Why it holds although a value changed.
    """

    fault: Counterexample | None = None
    refused: str | None = None
    declared: str | None = None


HOLDS: Final = Judged()


@st.composite
def more(draw: st.DrawFn, learnt: Learnt, one: Field | None) -> dict[str, Any]:
    """What else all engines say that is out of the ordinary, and that is not refused for that alone."""
    fixed = {learnt.about.key, *learnt.firm}
    others = [
        other for other in learnt.about.fields if other.name not in fixed and other is not one and drawable(other.type)
    ]
    chosen = draw(st.lists(st.sampled_from(others), max_size=MOST_MORE, unique_by=lambda other: other.name))
    return {other.name: draw(values(other.type, other.base).filter(_harmless(learnt, other))) for other in chosen}


def _harmless(learnt: Learnt, other: Field) -> Callable[[Any], bool]:
    return lambda value: (other.name, repr(value)) not in learnt.deadly


@st.composite
def typed(draw: st.DrawFn, learnt: Learnt, one: Field) -> dict[str, Any]:
    """What the user typed where the field ends."""
    found: dict[str, Any] = {}
    for path in learnt.targets[one.name]:
        shape = learnt.about.settable.get(path)
        if shape is not None and drawable(shape) and draw(st.booleans()):
            found[path] = draw(values(shape, none=False))
    return found


def changed(learnt: Learnt, name: str, state: State, other: State) -> list[str]:
    """Paths that a field reaches and that are not the same."""
    return [path for path in learnt.targets[name] if learnt.held(state, path) != learnt.held(other, path)]


def grown(learnt: Learnt, path: str, before: State, end: State) -> bool:
    """Whether an entry was added to a mapping, and every other is what it was."""
    had, has = learnt.held(before, path), learnt.held(end, path)
    return isinstance(had, dict) and isinstance(has, dict) and had.items() <= has.items()


def counter(
    learnt: Learnt,
    name: str,
    case: Case,
    ends: State,
    otherwise: State,
    paths: list[str],
    when: str,
    engines: tuple[int, ...] | None = None,
) -> Counterexample:
    """A counterexample of one field, at the paths where the front end should hold the same twice."""
    return Counterexample(
        messages=shown(name, case, engines),
        ends={path: learnt.held(ends, path) for path in paths},
        otherwise={path: learnt.held(otherwise, path) for path in paths},
        when=when,
        typed=dict(case.typed),
    )


def shown(name: str, case: Case, engines: tuple[int, ...] | None = None) -> tuple[Said, ...]:
    """What each engine says that is out of the ordinary."""
    numbers = engines or tuple(range(len(case.said)))
    return tuple((number, {**case.more, name: said}) for number, said in zip(numbers, case.said, strict=True))


def with_error(example: Counterexample, error: str | None) -> Counterexample:
    """The same, with what the engine's code raised."""
    return replace(example, error=error)
