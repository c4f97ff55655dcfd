"""What one run through one entry point knows, and what it finds."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from staticfire.harness.scan.base import Form, Guard, Location, Negative, Unknown
from staticfire.harness.scan.budget import Exhausted
from staticfire.harness.scan.slices import Slice
from staticfire.harness.scan.values import Class, Function, Items, Keys

if TYPE_CHECKING:
    from staticfire.harness.scan.modules import Module


Signal = Literal["return", "raise", "break", "continue"] | None
"""How a block of statements ended; None at its end. `raise` only where both sides of a branch are read."""


class Stopped(Exception):  # noqa: N818 - an end, not a fault
    """The run ends here: the test is skipped, or it raises."""


@dataclass(slots=True)
class Construct:
    """One engine that a site makes: keywords as they were typed, or the words of a command.

    Attributes:
        keywords: Keyword -> value, with places.
        command: The words after `vllm serve`, None where keywords are all there is.
        environment: What the construction sets in the environment of its process.
        model_key: Which keyword is the model; None where it is nested in `model_config`.
        missing: Why there may be further keywords, empty if there are none.
        built: Whether an engine was made of it, so that it changes no more.
    """

    keywords: Keys
    command: Items | None = None
    start: int = 0
    where: Location | None = None
    environment: Keys = field(default_factory=Keys)
    model_key: str | None = "model"
    missing: str = ""
    built: bool = False


@dataclass(slots=True)
class Record:
    """A site as one run saw it."""

    where: Location
    form: Form
    function: str
    caller: str
    constructs: list[Construct] = field(default_factory=list)
    ranges: list[tuple[str, int, int]] = field(default_factory=list)
    environment: Keys = field(default_factory=Keys)
    negative: Negative | None = None
    patched: str | None = None
    guards: tuple[Guard, ...] = ()
    assumed: tuple[str, ...] = ()


@dataclass(slots=True)
class Run:
    """One way through one entry point.

    Attributes:
        prefix: Which way to go at each of the first conditions that cannot be decided.
        taken: (ways there were, way that was taken) at each.
        joined: Whether both sides are read and merged instead of choosing one.
        held: Whether a generator that stands at its `yield` holds changes of the environment that end with it.
    """

    prefix: tuple[int, ...] = ()
    joined: bool = False
    steps: int = 0
    taken: list[tuple[int, int]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    depth: int = 0
    muted: int = 0
    caller: str = ""
    record: Record | None = None
    records: list[Record] = field(default_factory=list)
    environment: Keys = field(default_factory=Keys)
    raises: list[Negative] = field(default_factory=list)
    patched: list[str] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    fixtures: dict[str, Any] = field(default_factory=dict)
    scope: "Scope | None" = None
    requests: dict[str, Any] = field(default_factory=dict)
    picks: dict[tuple[str, str], Any] = field(default_factory=dict)
    stack: list[int] = field(default_factory=list)
    held: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """Where fixture names are looked up: the test's module and class."""

    module: "Module"
    owners: tuple[Class, ...] = ()


@dataclass(slots=True)
class Frame:
    """Names of one function call (or of a module, or of a class body).

    Attributes:
        given: Parameter -> where its argument was written, while a wrapper is looked into.
        yields: What was yielded so far, None outside functions.
        comprehension: Whether it holds the loop variables of a comprehension in the function around it.
        maybe: What may have been returned before, where both sides of a branch were read.
    """

    module: "Module"
    names: dict[str, Any]
    parent: "Frame | None" = None
    function: Function | None = None
    qualified: str = ""
    slice: Slice | None = None
    given: Mapping[str, Location] = field(default_factory=dict)
    yields: list[Any] | None = None
    returns: Any = None
    maybe: list[Any] = field(default_factory=list)
    is_test: bool = False
    comprehension: bool = False


@dataclass(frozen=True, slots=True)
class Raises:
    """`pytest.raises(...)`, to be entered."""

    negative: Negative


@dataclass(frozen=True, slots=True, eq=False)
class Param:
    """`pytest.param(...)`: its values, the id it was given, its marks."""

    values: tuple[Any, ...]
    id: str | None
    marks: tuple[ast.expr, ...]
    frame: Frame


@dataclass(frozen=True, slots=True)
class Patch:
    """A patching context, to be entered."""

    text: str
    environment: bool = False


UNBOUND = Unknown("name", "not bound here")

__all__ = [
    "UNBOUND", "Construct", "Exhausted", "Frame", "Param", "Patch", "Raises", "Record", "Run", "Scope", "Signal",
    "Stopped",
]  # fmt: skip
