"""What each field reaches in the front end, and what becomes of two engines' values there: learnt by trying."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from staticfire.harness.sync.contract.base import (
    About,
    Delivered,
    Field,
    Message,
    Run,
    State,
    Subject,
    SubjectDiedError,
)
from staticfire.harness.sync.contract.draw import plainest

DIED: Final = "the process died"
MOST_DEATHS: Final = 3
"""Where ordinary values end the process this often, there is nothing to be learnt."""
UNSET: Final = object()
UNREAD: Final = "not read"
REFUSED: Final = "refused where they differ"
AS_TRIED: Final[Mapping[str, str]] = {
    "minimum": "the smallest",
    "sum_over_engines": "added up",
    "must_agree": REFUSED,
    "as_resolved": REFUSED,
    "per_engine": "each engine's own is kept",
}
"""What a merged value means -> what is seen where two engines are tried."""
LAST: Final = "the last to answer wins"
FIRST: Final = "the first to answer wins"


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is known of an engine before any property is tried.

    Attributes:
        about: What was found.
        base: What an engine says as a rule.
        targets: Field -> the paths that it reaches.
        merges: Field -> what becomes of two engines' values.
        firm: Fields of which the front end refuses every value but the usual one.
        deadly: Field and value that ended the process.
    """

    about: About
    base: Message
    targets: Mapping[str, tuple[str, ...]]
    merges: Mapping[str, str]
    firm: frozenset[str] = frozenset()
    deadly: set[tuple[str, str]] = field(default_factory=set)

    def message(self, engine: int, values: Message) -> dict[str, Any]:
        """What engine number `engine` says: as a rule, but for `values`."""
        key = {} if self.about.key is None else {self.about.key: engine}
        return {**self.base, **key, **values}

    def held(self, state: State, path: str) -> Any:
        """What a front end holds."""
        return state.get(path, self.about.defaults.get(path))

    def holds(self, state: State, field: str) -> dict[str, Any]:
        """Path -> what a front end holds, where a field ends."""
        return {path: self.held(state, path) for path in self.targets[field]}


def learn(subject: Subject) -> Learnt:
    """Try each field with a few values.

    Raises:
        SubjectDiedError: No answer.
        ValueError: The front end refuses even what an engine says as a rule.
    """
    about = subject.about
    base = {one.name: one.base for one in about.fields}
    learnt = Learnt(about, base, {}, {})
    first = subject.deliver([Run([learnt.message(0, {})])])[0]
    if first.error is not None:
        raise ValueError(first.error)
    targets: dict[str, tuple[str, ...]] = {}
    merges: dict[str, str] = {}
    firm: set[str] = set()
    for one in about.fields:
        if one.name == about.key:
            continue
        tries = [value for value in plainest(one.type) if value != one.base]
        done = [_alone(subject, learnt, one, value) for value in tries]
        targets[one.name] = _reached(first, done)
        if done and all(delivered.error is not None for delivered in done):
            firm.add(one.name)
    learnt = Learnt(about, base, targets, merges, frozenset(firm), learnt.deadly)
    for one in about.fields:
        if one.name != about.key:
            merges[one.name] = _merge(subject, learnt, one)
    return learnt


def _alone(subject: Subject, learnt: Learnt, field: Field, value: Any) -> Delivered:
    """What comes of one engine that says `value`; where that ends the process, it is not asked again."""
    key = (field.name, repr(value))
    if key in learnt.deadly:
        return Delivered(({},), DIED)
    try:
        return subject.deliver([Run([learnt.message(0, {field.name: value})])])[0]
    except SubjectDiedError:
        learnt.deadly.add(key)
        if len(learnt.deadly) >= MOST_DEATHS:
            raise
        return Delivered(({},), DIED)


def _reached(first: Delivered, done: list[Delivered]) -> tuple[str, ...]:
    """The paths that change with a field: those for everybody, or else the front end's own notes."""
    ends = [one.end for one in done if one.error is None]
    paths = dict.fromkeys(path for end in (first.end, *ends) for path in end)
    reached = [path for path in paths if any(end.get(path, UNSET) != first.end.get(path, UNSET) for end in ends)]
    return tuple(path for path in reached if "._" not in f".{path}") or tuple(reached)


def _merge(subject: Subject, learnt: Learnt, field: Field) -> str:
    pair = _apart(subject, learnt, field)
    if pair is None:
        return UNREAD if not learnt.targets[field.name] else "cannot be told: no two values that differ were taken over"
    name, (one, other) = field.name, pair
    forth, back, alone, alone_too = subject.deliver(
        [
            Run([learnt.message(0, {name: one}), learnt.message(1, {name: other})]),
            Run([learnt.message(1, {name: other}), learnt.message(0, {name: one})]),
            Run([learnt.message(0, {name: one})]),
            Run([learnt.message(1, {name: other})]),
        ]
    )
    if forth.error is not None and back.error is not None:
        return REFUSED
    if not learnt.targets[name]:
        return UNREAD
    if forth.error is not None or back.error is not None:
        return "refused, or not, by who answers first"
    ends = [learnt.holds(done.end, name) for done in (forth, back, alone, alone_too)]
    return _named(ends, one, other)


def _apart(subject: Subject, learnt: Learnt, field: Field) -> tuple[Any, Any] | None:
    """Two values that end differently, each alone; else two of which one is refused."""
    asked = [value for value in (*plainest(field.type), field.base) if value is not None]
    tried = [(value, _alone(subject, learnt, field, value)) for value in asked]
    values = [value for value, one in tried if one.error != DIED]
    outcomes = [
        learnt.holds(one.end, field.name) if one.error is None else {"": one.error.partition(":")[0]}
        for _, one in tried
        if one.error != DIED
    ]
    pairs = [
        (one, other)
        for index, one in enumerate(values)
        for other, ends in zip(values[index + 1 :], outcomes[index + 1 :], strict=True)
        if one != other and (outcomes[index] != ends or not learnt.targets[field.name])
    ]
    return pairs[0] if pairs else None


def _named(ends: list[dict[str, Any]], one: Any, other: Any) -> str:
    """A name for what becomes of `one` and then `other`, and of the other order."""
    forth, back, alone, alone_too = ends
    differ = [path for path in forth if forth[path] != back[path]]
    if differ:
        path = differ[0]
        if (forth[path], back[path]) == (alone_too[path], alone[path]):
            return LAST
        return FIRST if (forth[path], back[path]) == (alone[path], alone_too[path]) else "depends on who answers first"
    changed = [path for path in forth if alone[path] != alone_too[path]] or list(forth)
    held = forth[changed[0]]
    if isinstance(held, dict | list):
        return AS_TRIED["per_engine"]
    if held is None:
        return "one value where all agree, else None"
    if isinstance(one, int | float) and not isinstance(one, bool):
        names = {one + other: "added up", min(one, other): "the smallest", max(one, other): "the largest"}
        return names.get(held, "combined, whoever answers first")
    return "combined, whoever answers first"
