"""What the properties are stated over: an engine's ready response, driven without the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

SCHEMA_VERSION: Final = 1

Message = Mapping[str, Any]
"""Field of the response -> value, as on the wire; a field that is left out is left out there."""
State = Mapping[str, Any]
"""Path in the front end -> value, of what is not as the front end was made."""


Said = tuple[int, Message]
"""An engine's number, and what it says that is out of the ordinary."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the response.

    Attributes:
        name: Its name.
        type: What it may be, as data: `{"is": "int", "least": 0}`, `{"is": "any of", "of": […]}`.
        base: What an engine says there as a rule.
        line: Where the front end reads it last; None where nothing is known of that.
    """

    name: str
    type: Mapping[str, Any]
    base: Any
    line: int | None = None


@dataclass(frozen=True, slots=True)
class About:
    """What was found.

    Attributes:
        engine: Which engine, with its version.
        response: The class that engines answer with.
        defined_at: `path:line` of it.
        applies: What applies it in the front end.
        applied_at: `path:line` of that.
        fields: The response's fields, in order.
        key: The field that tells engines apart; None where the front end does not tell them apart.
        settable: Path in the front end -> type, of what a user may have typed there.
        defaults: Path in the front end -> what is there before anybody answers.
        misdeclared: Field -> the merge that it is declared with, and what the merged value means, where they differ.
        meanings: Field -> what the merged value means; empty for an engine of which nobody stated it.
    """

    engine: str
    response: str
    defined_at: str
    applies: str
    applied_at: str
    fields: tuple[Field, ...]
    key: str | None
    settable: Mapping[str, Mapping[str, Any]]
    defaults: Mapping[str, Any]
    misdeclared: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    meanings: Mapping[str, str] = field(default_factory=dict)

    def line(self, name: str | None) -> str:
        """`path:line` of where the front end reads a field, or of the whole."""
        lines = [one.line for one in self.fields if one.name == name and one.line is not None]
        return f"{self.applied_at.rpartition(':')[0]}:{lines[0]}" if lines else self.applied_at


@dataclass(frozen=True, slots=True)
class Run:
    """What is delivered to a new front end.

    Attributes:
        messages: What engines answer, in the order of arrival.
        typed: Path -> what the user typed there.
    """

    messages: Sequence[Message]
    typed: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What came of it.

    Attributes:
        states: The front end before the first message and after each that it took.
        error: What the front end refused the next message with; None where it took them all.
    """

    states: tuple[State, ...]
    error: str | None

    @property
    def end(self) -> State:
        """What the front end holds in the end."""
        return self.states[-1]


@dataclass(frozen=True, slots=True)
class RoundTrip:
    """What became of a response on the wire.

    Attributes:
        lost: Fields that are not what they were.
        error: Why it could not be sent or read at all.
    """

    lost: tuple[str, ...]
    error: str | None


class SubjectDiedError(Exception):
    """The process that runs the engine's code died or hung over one question, twice; the text says how."""


class Subject(Protocol):
    """An engine whose response can be driven."""

    about: About

    def deliver(self, runs: Sequence[Run]) -> list[Delivered]:
        """Let new front ends take messages over, one for each run.

        Raises:
            SubjectDiedError: No answer.
        """
        ...

    def round_trip(self, message: Message) -> RoundTrip:
        """Send and read one response.

        Raises:
            SubjectDiedError: No answer.
        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The smallest example that a property does not hold for.

    Attributes:
        typed: Path -> what the user typed there, where that matters.
        messages: What each engine says that is out of the ordinary, in the order of arrival; a field that an engine
            leaves out is `LEFT_OUT`.
        ends: Path -> what the front end holds in the end.
        otherwise: Path -> what it holds where it should hold the same.
        when: When that is, in words.
        error: What the engine's code raised.
    """

    messages: tuple[Said, ...]
    ends: Mapping[str, Any]
    otherwise: Mapping[str, Any]
    when: str
    typed: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None


LEFT_OUT: Final = "(left out)"


@dataclass(frozen=True, slots=True)
class Finding:
    """A field that a property does not hold for.

    Attributes:
        rule: Which property, by its name.
        field: Which field of the response; None where no single one is at fault.
        example: The smallest example.
        where: `path:line` of the code that takes the field over.
        accepted: Why the user accepts it; None where it stands.
    """

    rule: str
    field: str | None
    example: Counterexample
    where: str
    accepted: str | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """Refusals of one kind.

    Attributes:
        error: The shortest of them, in the engine's words.
        fields: The fields that were out of the ordinary.
    """

    error: str
    fields: tuple[str, ...]

    @property
    def names_a_field(self) -> bool:
        """Whether whoever reads the error learns what is wrong."""
        return any(name in self.error for name in self.fields)


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one property.

    Attributes:
        rule: Its name.
        statement: What it says.
        examples: How many were tried.
        fields: Of how many fields.
        whole: Whether it is one of the whole response, and of no field.
        refused: What the front end refused, rather than take something wrong over.
        declared: Field -> why it is no finding though its value changed.
        untried: Field -> why no example of it was tried, or not all.
    """

    rule: str
    statement: str
    examples: int
    fields: int
    whole: bool
    refused: tuple[Refused, ...]
    declared: Mapping[str, str]
    untried: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found.

    Attributes:
        about: What was driven.
        merges: Field -> what the front end makes of two engines, as tried.
        targets: Field -> the paths in the front end that it reaches.
        tried: The properties.
        findings: What does not hold, in the order of the properties.
        notes: What else there is to know.
    """

    about: About
    merges: Mapping[str, str]
    targets: Mapping[str, tuple[str, ...]]
    tried: tuple[Tried, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def standing(self) -> tuple[Finding, ...]:
        """The findings that nobody accepts."""
        return tuple(finding for finding in self.findings if finding.accepted is None)
