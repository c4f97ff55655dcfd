"""The contract of an audit: what every kind of it finds, however it looks.

A live audit lays the views of a running engine side by side; other kinds (reading source, comparing declared
messages) answer with the same findings, and fill in `where` instead of `held`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from staticfire.engine.view import Plain, View

SCHEMA_VERSION: Final = 1

Kind = Literal["differs", "missing", "not-sent"]
"""`differs`: holders have different values. `missing`: a holder lacks the field. `not-sent`: an engine did not report
the field, so that the front end goes on with what it resolved itself."""

Merge = Literal["minimum", "sum_over_engines", "must_agree", "as_resolved", "per_engine"]
"""How the values of several engines become the front end's one."""


@dataclass(frozen=True, slots=True)
class Road:
    """How a value that an engine settles reaches the front end.

    Attributes:
        merge: What becomes of the values of several engines.
        by: In words.
    """

    merge: Merge
    by: str


@dataclass(frozen=True, slots=True)
class Held:
    """A value and everyone who has it; `present` is False where they lack the field."""

    holders: tuple[str, ...]
    value: Plain = None
    present: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """One field that not everyone has right.

    Attributes:
        kind: What is wrong with it.
        field: `section.field`.
        message: One line.
        held: The values, and who holds them; the engine's own first.
        travels: How the value should have reached everyone.
        where: `file:line`, where the audit read source.
    """

    kind: Kind
    field: str
    message: str
    held: tuple[Held, ...] = ()
    travels: str = ""
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit looked at, and what it found.

    Attributes:
        engine: Which engine, with its version.
        subject: What was audited: a model and how it was laid out.
        holders: Everyone whose values were compared.
        fields: How many fields were compared.
        findings: What is wrong, in the order of the fields.
        notes: What was not looked at, and why.
    """

    engine: str
    subject: str
    holders: tuple[str, ...]
    fields: int
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The versioned form for machines (`docs/schemas/sync.json`)."""
        return {
            "schema": SCHEMA_VERSION,
            "engine": self.engine,
            "subject": self.subject,
            "holders": list(self.holders),
            "fields": self.fields,
            "in_step": not self.findings,
            "findings": [_finding(finding) for finding in self.findings],
            "notes": list(self.notes),
        }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "field": finding.field,
        "message": finding.message,
        "held": [
            {"holders": list(held.holders), "present": held.present, "value": held.value} for held in finding.held
        ],
        "travels": finding.travels,
        "where": finding.where,
    }


@dataclass(frozen=True, slots=True)
class Seen:
    """What a live engine showed.

    Attributes:
        engine: Which engine, with its version.
        views: Everyone's values.
        roads: Field -> how it travels; a field without one must be the same everywhere from the start.
        stays: Field -> why it need not travel, where the engine says why.
        unreported: Engine -> fields that its report lacked.
        notes: What could not be seen, and why.
        misdeclared: What is wrong with how values travel, whatever they are.
    """

    engine: str
    views: Sequence[View]
    roads: Mapping[str, Road]
    stays: Mapping[str, str] = field(default_factory=dict)
    unreported: Mapping[int, Sequence[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    misdeclared: tuple[Finding, ...] = ()


class LiveEngine(Protocol):
    """An engine that can be started and asked."""

    name: str

    def look(self, model: str, typed: Mapping[str, Any]) -> Seen:
        """Start it in the asked layout, collect everyone's views, and stop it.

        Raises:
            EngineError, InputError: It cannot run here, or refuses the configuration.
        """
        ...
