"""The variables of a shell script while it is followed, with a journal: a way can be gone, taken back, and compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.budget import Budget
from staticfire.harness.scan.shellnames import DYNAMIC, Assigned
from staticfire.harness.scan.shelltree import Item, Node
from staticfire.harness.scan.values import Rest

Key = tuple[str, str]
"""What kind of thing is held (`VALUE`, ...), and its name."""
VALUE, LIST, EXPORTED, MARKED, EXPORT_ALL, FUNCTION, ODD, UNSURE, SPLIT, LASTPIPE, LOST = (
    "value", "list", "exported", "marked", "allexport", "function", "odd", "?", "IFS", "|", "lost",
)  # fmt: skip
ABSENT: Any = object()
_WALKED = 256
"""Names that are walked through whenever any of them may have been assigned; with more, nothing is known afterwards."""
_EVERYTHING: Key = (UNSURE, "")


@dataclass(slots=True)
class Variables:
    """What a script has assigned, as far as it has been followed.

    Attributes:
        budget: What may still be spent.
        held: What is known: values, arrays, exports, functions, and what makes any of them doubtful.
    """

    budget: Budget
    held: dict[Key, Any] = field(default_factory=dict)
    _journal: list[tuple[Key, Any]] = field(default_factory=list)

    # Reading

    def value(self, name: str) -> Any:
        """The value of a variable, None where the script has not assigned it."""
        if name in DYNAMIC or self.unsure:
            return Unknown("shell", name)
        found = self.held.get((VALUE, name))
        return Unknown("shell", name) if found is None and self.has(LOST) else found

    def items(self, name: str) -> list[Any] | None:
        """The elements of an array, None where it is none."""
        if name in DYNAMIC or self.unsure:
            return None
        found: list[Any] | None = self.held.get((LIST, name))
        return found

    @property
    def unsure(self) -> bool:
        """Whether anything may have been assigned."""
        return _EVERYTHING in self.held

    def has(self, kind: str, name: str = "") -> bool:
        """Whether something of that kind is held."""
        return (kind, name) in self.held

    def function(self, name: str) -> list[Item] | None:
        """The body of a function."""
        found: list[Item] | None = self.held.get((FUNCTION, name))
        return found

    # Changing

    def put(self, kind: str, name: str, value: Any) -> None:
        """Hold something from now on; `ABSENT` holds it no more."""
        key = (kind, name)
        self._journal.append((key, self.held.get(key, ABSENT)))
        if value is ABSENT:
            self.held.pop(key, None)
        else:
            self.held[key] = value

    def set(self, name: str, value: Any) -> None:
        """Assign a variable."""
        if self.has(ODD, name):
            value = Unknown("shell", name)
        if self.has(LIST, name):
            self.put(LIST, name, [Rest(Unknown("shell", name))])
        self.put(VALUE, name, value)
        if self.has(EXPORTED, name) or self.has(MARKED, name) or self.has(EXPORT_ALL):
            self.put(EXPORTED, name, value)

    def forget(self, what: Assigned | Iterable[str]) -> None:
        """Hold for not known what may have been assigned."""
        if isinstance(what, Assigned):
            if what.anything:
                self.lose()
            what = what.names
        for name in what:
            self.set(name, Unknown("shell", name))
            if name == "IFS":
                self.put(SPLIT, "", True)

    def lose(self) -> None:
        """Something ran that is not here: whatever was assigned may be another value now."""
        if len(self.held) > _WALKED:
            self.put(UNSURE, "", True)
            return
        for kind, name in list(self.held):
            if kind in {VALUE, LIST}:
                self.forget([name])
            elif kind == FUNCTION:
                self.put(ODD, f"{name}()", True)
        self.put(LOST, "", True)
        self.put(LIST, "@", ABSENT)

    # Ways

    def mark(self) -> int:
        """Where the journal stands."""
        return len(self._journal)

    def back(self, mark: int) -> dict[Key, Any]:
        """Take back everything since a mark, and tell what it had come to."""
        changed: dict[Key, Any] = {}
        while len(self._journal) > mark:
            key, before = self._journal.pop()
            if key not in changed:
                changed[key] = self.held.get(key, ABSENT)
            if before is ABSENT:
                self.held.pop(key, None)
            else:
                self.held[key] = before
        return changed

    def merge(self, ways: Sequence[Mapping[Key, Any]]) -> None:
        """Hold what is left after one of several ways was gone, nobody knows which."""
        for key in dict.fromkeys(key for way in ways for key in way):
            now = self.held.get(key, ABSENT)
            made = _either(key, [way.get(key, now) for way in ways])
            self.put(*key, made)


def _either(key: Key, values: list[Any]) -> Any:
    first = values[0]
    kind, name = key
    same = kind != FUNCTION  # functions are told apart by being another, and their bodies are large to compare
    if all(value is first or (same and type(value) is type(first) and value == first) for value in values):
        return first
    if kind in {UNSURE, SPLIT, ODD, LASTPIPE, LOST, MARKED, EXPORT_ALL}:
        return True
    if kind == FUNCTION:
        bodies: list[tuple[list[Item], list[Item]]] = [([], value) for value in values if value is not ABSENT]
        return [Item(Node("branches", 0, blocks=bodies, closed=ABSENT not in values))]
    if kind == LIST:
        return [Rest(Unknown("condition", name))]
    known: list[Any] = []
    for value in values:
        known.extend(value.candidates or (value,) if isinstance(value, Unknown) else (value,))
    texts = tuple(dict.fromkeys(known)) if all(isinstance(value, str) for value in known) else ()
    return Unknown("condition", name, tuple(str(text) for text in texts))


__all__ = [
    "ABSENT", "EXPORTED", "EXPORT_ALL", "FUNCTION", "LASTPIPE", "LIST", "MARKED", "ODD", "SPLIT", "UNSURE", "VALUE",
    "Key", "Variables",
]  # fmt: skip
