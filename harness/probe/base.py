"""The contract of every probe: a configuration goes in, the engine's own word comes out.

An answer has three parts: what the front end says, what the worker says at start-up (attention backend, block sizes),
and whether the cache has room. Each is accepted, refused, or not known for a stated reason. `parts_of` gives all three
of any outcome. What is not known is a type of its own: a part that is not known is `NotKnown`, which has no values, and
a configuration of which the worker's part is not known is `Undecided`, which is not `Accepted`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, assert_never

Entry = Literal["EngineArgs", "LLM", "serve", "VllmConfig"]
Part = Literal["front end", "worker", "capacity"]
PARTS: Final[tuple[Part, ...]] = ("front end", "worker", "capacity")
"""In the order in which an engine comes to them."""
BEYOND: Final = "the reference engine does not run it"
"""How the detail of a `Crashed` begins that only says what our own engine lacks."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something the engine says while it resolves, such as that it ignores a value.

    Attributes:
        message: Its words.
        origin: Where in its code it says so, as `file:line`.
    """

    message: str
    origin: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A part that accepts.

    Attributes:
        values: What it makes of the configuration.
    """

    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NotKnown:
    """A part that neither accepts nor refuses, as far as anybody could ask it.

    Attributes:
        because: Why nobody knows.
    """

    because: str


@dataclass(frozen=True, slots=True)
class Accepted:
    """The front end and the worker accept; `capacity` says whether the room for the cache is known, too.

    Attributes:
        resolved: `section.field` -> value after the front end's defaults.
        runtime: What the worker makes of it at start-up.
        notes: Warnings on the way.
        capacity: What is known of the number of cache blocks.
    """

    resolved: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    capacity: Settled | NotKnown = NotKnown("the number of cache blocks was not asked for")


@dataclass(frozen=True, slots=True)
class Undecided:
    """The front end accepts; whether the worker does is not known.

    Attributes:
        resolved: As of `Accepted`.
        worker: Why the worker's part is not known.
        notes: Warnings on the way.
    """

    resolved: Mapping[str, Any]
    worker: NotKnown
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Seen:
    """A value that the engine looked at when it refused.

    Attributes:
        field: `section.field`; of the model's own configuration, `config.json.field`.
        value: What it was then.
        default: Whether that is the field's own default.
    """

    field: str
    value: Any
    default: bool = False


@dataclass(frozen=True, slots=True)
class Rejected:
    """The engine refuses.

    Attributes:
        kind: `field` for a keyword or value it does not know, `rule` for values that clash.
        message: All that it says.
        origin: Where in its code the refusal arises, as `file:line`, or the rule's name.
        rules: Codes of every broken rule, sorted; empty for an engine without codes.
        phase: The part that refuses; those before it accept.
        notes: Warnings on the way.
        values: What the engine's own condition looked at, where that is known.
        resolved: `section.field` -> value after the front end's defaults; empty where the front end refuses.
        doubt: Why the engine may yet accept on the device itself; empty where it cannot.
    """

    kind: Literal["field", "rule"]
    message: str
    origin: str
    rules: tuple[str, ...] = ()
    phase: Part = "front end"
    notes: tuple[Note, ...] = ()
    values: tuple[Seen, ...] = ()
    resolved: Mapping[str, Any] = field(default_factory=dict)
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Crashed:
    """The engine gave no answer: it failed where it should have decided.

    Attributes:
        detail: What happened.
        lasting: Whether it would happen again, such as a model class that cannot be imported; a process that was
            killed or timed out may fare better the next time.
    """

    detail: str
    lasting: bool = False


Outcome = Accepted | Undecided | Rejected | Crashed


@dataclass(frozen=True, slots=True)
class Parts:
    """The three parts of an answer."""

    front_end: Settled | Rejected | NotKnown
    worker: Settled | Rejected | NotKnown
    capacity: Settled | Rejected | NotKnown

    @property
    def first_unknown(self) -> tuple[Part, str] | None:
        """The first part that is not known, and why, if every part before it accepts; None where there is none."""
        for name, part in zip(PARTS, (self.front_end, self.worker, self.capacity), strict=True):
            if isinstance(part, NotKnown):
                return name, part.because
            if isinstance(part, Rejected):
                return None
        return None


def parts_of(outcome: Outcome) -> Parts:
    """Take an answer apart. What comes after a part that refuses, or that is not known, is not known either."""
    match outcome:
        case Accepted():
            return Parts(Settled(outcome.resolved), Settled(outcome.runtime), outcome.capacity)
        case Undecided():
            return Parts(Settled(outcome.resolved), outcome.worker, _after("worker's part is not known"))
        case Rejected(phase="front end"):
            after = _after("front end refuses")
            return Parts(outcome, after, after)
        case Rejected(phase="worker"):
            return Parts(Settled(outcome.resolved), outcome, _after("worker refuses"))
        case Rejected():
            return Parts(Settled(outcome.resolved), Settled(), outcome)
        case Crashed():
            after = _after("front end's part is not known")
            return Parts(NotKnown(outcome.detail), after, after)
        case _:
            assert_never(outcome)


def _after(what: str) -> NotKnown:
    return NotKnown(f"the {what}")


@dataclass(frozen=True, slots=True)
class Question:
    """One configuration to judge.

    Attributes:
        model: A folder that holds a config.json; for the reference engine also a name or an id.
        arguments: Keywords as a user types them.
        entry: The entry point whose own defaults and checks apply: `EngineArgs(...)`, `LLM(...)`, the
            server, or `VllmConfig(...)` by hand, whose keywords read `section.field` and whose model may be a folder
            without a configuration: none.
        argv: Command-line arguments instead of keywords, without the model; parsed by the engine's own parser.
        environment: Variables that the site sets for the engine, such as `VLLM_USE_V2_MODEL_RUNNER`.
    """

    model: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    entry: Entry = "EngineArgs"
    argv: tuple[str, ...] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """Which engine answers.

    Attributes:
        name: `reference` or `vllm`.
        version: Its own version.
        digest: Hash of the engine's code and of what decides with it.
        where: The folder it lies in, for people.
    """

    name: str
    version: str
    digest: str
    where: str


class Probe(Protocol):
    """Something that answers for an engine whose rules are at hand."""

    def ask(self, model: str, config: Mapping[str, Any]) -> Outcome:
        """Judge one configuration.

        Args:
            model: A path, a name of `matrices/models/`, or a Hugging Face id in the local cache.
            config: Keywords as a user types them.
        """
        ...

    def field_fault(self, keyword: str, value: Any) -> str | None:
        """What is wrong with one keyword or its value, whatever else is typed; None if nothing."""
        ...

    def rule_name(self, code: str) -> str | None:
        """The readable name of a rule; None for a code that the engine does not have."""
        ...

    def rule_codes(self) -> tuple[str, ...]:
        """Every code of the engine's catalogue, sorted."""
        ...


class EngineProbe(Protocol):
    """Something that answers many questions for any engine."""

    @property
    def identity(self) -> EngineIdentity:
        """Which engine answers."""
        ...

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        """Judge configurations; the answers are in the order of the questions. Never raises for one of them."""
        ...

    def close(self) -> None:
        """End whatever was started."""
        ...
