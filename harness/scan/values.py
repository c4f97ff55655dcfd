"""What names can stand for while a source is read: plain Python values, and stand-ins for everything else."""

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from staticfire.harness.scan.base import Constant, Location, Unknown
from staticfire.harness.scan.budget import ELEMENT, TooLarge, current

if TYPE_CHECKING:
    from staticfire.harness.scan.modules import Module


class Text(str):
    """A string that remembers where it was written."""

    __slots__ = ("where",)
    where: Location

    def __new__(cls, value: str, where: Location) -> Self:
        """Attach a place to a string."""
        text = super().__new__(cls, value)
        text.where = where
        return text


class Keys(dict[Any, Any]):
    """A dict that remembers where each key was written, and whether there may be keys that are not known."""

    __slots__ = ("rest", "where")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.where: dict[Any, Location] = {}
        self.rest: Unknown | None = None
        for other in args:
            self.inherit(other)

    def inherit(self, other: Any) -> None:
        """Take over the places, and the openness, of the dict that was merged in."""
        if isinstance(other, Keys):
            self.where.update(other.where)
            self.rest = self.rest or other.rest

    def duplicate(self) -> "Keys":
        """A shallow copy with the same places."""
        return Keys(self)


class Items(list[Any]):
    """A list that can be part of a command whose site was found when its first words were read."""

    __slots__ = ("command",)

    def __init__(self, items: Iterable[Any] = (), command: Any = None) -> None:
        super().__init__(items)
        self.command = command


@dataclass(frozen=True, slots=True)
class Rest:
    """In a list: any number of further elements that are not known."""

    why: Unknown


@dataclass(frozen=True, slots=True)
class Joined:
    """A string of which only a part is known: `known` pieces with `Unknown` ones between them."""

    pieces: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class External:
    """Something defined outside the sources that are read, by its dotted name.

    Attributes:
        name: The dotted name.
        constant: What it stands for, where the engine's source says so.
    """

    name: str
    constant: Constant | None = field(default=None, compare=False)

    @property
    def last(self) -> str:
        """The last part of the name."""
        return self.name.rpartition(".")[2]


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """A function, or a lambda, defined in a source that is read."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: "Module"
    owner: "Class | None" = None
    bound: Any = None
    closure: Any = None
    name: str = "<lambda>"


@dataclass(slots=True, eq=False)
class Class:
    """A class defined in a source that is read.

    Attributes:
        members: What its body binds, once that was asked.
        foreign: Last names of the bases that are not read, inherited ones included, once that was asked.
    """

    node: ast.ClassDef
    module: "Module"
    closure: Any = None
    members: dict[str, Any] | None = None
    foreign: frozenset[str] | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class that is read."""

    cls: Class
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Super:
    """`super()` in a method of `cls`, called on `receiver`."""

    cls: Class
    receiver: Any


@dataclass(frozen=True, slots=True, eq=False)
class Inherited:
    """`__init__` of a base that is not read, by its last name, for one object."""

    base: str
    receiver: Any


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration that is read.

    Attributes:
        mixed: Whether it is a text or a number itself: `class Mode(str, Enum)`.
    """

    cls: Class
    name: str
    value: Any
    mixed: bool = False


@dataclass(slots=True, eq=False)
class Made:
    """An object of an engine's own configuration class: its name and what it was made with."""

    name: str
    keywords: Keys
    construct: Any = None


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module that is read."""

    module: "Module"


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """`functools.partial` of something."""

    function: Any
    args: tuple[Any, ...]
    keywords: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a plain value, not yet called."""

    receiver: Any
    name: str


class Capability(NamedTuple):
    """A compute capability."""

    major: int
    minor: int


PLAIN = (str, int, float, bool, type(None), list, dict, tuple, set, frozenset, bytes, complex, range)


def unmixed(value: Any) -> Any:
    """The text or number that a member of an enumeration is; any other value as it is."""
    return value.value if isinstance(value, Member) and value.mixed else value


def is_known(value: Any) -> bool:
    """Whether a value is a plain one (which may hold unknown ones)."""
    return isinstance(value, PLAIN)


def deeply_known(value: Any) -> bool:
    """Whether a value is plain all the way down.

    Raises:
        TooLarge: It is too large to be walked through.
    """
    if isinstance(value, str | int | float | NoneType):
        return not isinstance(value, str) or len(value) < LONG or walk(value)
    return isinstance(value, PLAIN) and walk(value)


LONG = 1_000
"""Characters from which a text counts as one that has to be walked through."""


def walk(value: Any) -> bool:
    """Walk through a value, charging the budget for it, and tell whether it is plain all the way down.

    Raises:
        TooLarge: It is too large.
    """
    budget = current()
    allowed = min(budget.value, budget.memory) // ELEMENT
    left = [allowed]
    try:
        return _plain(value, 0, left)
    finally:
        budget.memory -= (allowed - left[0]) * ELEMENT


def _plain(value: Any, depth: int, left: list[int]) -> bool:
    left[0] -= 1 + (len(value) // ELEMENT if isinstance(value, str | bytes) else 0)
    if left[0] < 0:
        left[0] = 0
        raise TooLarge
    if depth > 12 or not isinstance(value, PLAIN):
        return False
    if isinstance(value, Keys) and value.rest is not None:
        return False
    if isinstance(value, dict):
        return all(_plain(k, depth + 1, left) and _plain(v, depth + 1, left) for k, v in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return all(_plain(item, depth + 1, left) for item in value)
    return True
