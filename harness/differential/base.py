"""What the parts of a comparison hand to each other: cases, the answers of both sides, disagreements."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["accepted", "refused", "not known"]
Kind = Literal["ours refuses", "theirs refuses", "values differ"]
Subject = Literal["configuration", "capacity"]


@dataclass(frozen=True, slots=True)
class Case:
    """One drawn configuration.

    Attributes:
        model: Name in `matrices/models/`.
        typed: Keywords as a user types them.
    """

    model: str
    typed: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Equal for equal configurations."""
        return repr((self.model, sorted(self.typed.items())))


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one side says of one subject.

    Attributes:
        verdict: Whether it accepts, refuses, or cannot say.
        because: Why the verdict is not known, or where in the engine's code a refusal arises, as `file:line`.
        message: The words of a refusal.
        reasons: Of a refusal by our rules: each code with its words.
        blind: Of an acceptance: what was not looked at, so that only a refusal for that sake contradicts nothing.
    """

    verdict: Verdict
    because: str = ""
    message: str = ""
    reasons: tuple[tuple[str, str], ...] = ()
    blind: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one side says of a case.

    Attributes:
        configuration: Whether front end and worker take the values.
        capacity: Whether the cache has room.
        values: `section.field` -> settled value; run-time values are named `runtime.field`.
        typed: Names in `values` that the user typed: the other side may not leave these open.
        bounds: Names of which only the largest possible value is known.
    """

    configuration: Opinion
    capacity: Opinion
    values: Mapping[str, Any] = field(default_factory=dict)
    typed: frozenset[str] = frozenset()
    bounds: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One way in which the two sides differ on a case.

    Attributes:
        case: The configuration.
        kind: Who refuses what the other accepts, or that a value differs.
        subject: Which part of the answer it is about.
        because: Codes of our rules, the place in the engine's code, or the name of the value.
        ours: Our words, or our value.
        theirs: The engine's words, or its value.
    """

    case: Case
    kind: Kind
    subject: Subject
    because: str
    ours: Any
    theirs: Any

    @property
    def group(self) -> tuple[str, str, str]:
        """Equal for disagreements with one cause, as far as their origin tells."""
        return self.kind, self.subject, self.because


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two answers side by side.

    Attributes:
        configuration: `accepted` or `refused` where both agree, `differs`, or `not known`.
        capacity: The same; `not asked` where the configuration is not accepted by both.
        values: How many values were compared.
        unknown: For each subject that is not known, who does not know it and why.
        disagreements: Every difference.
    """

    configuration: str
    capacity: str
    values: int
    unknown: tuple[tuple[Subject, str, str], ...]
    disagreements: tuple[Disagreement, ...]
