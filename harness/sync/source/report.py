"""What an audit of source answers: findings, each with a write, a read and what is missing between; and coverage."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from staticfire.harness.scan.base import Unread
from staticfire.harness.sync.source.product import Left

SCHEMA_VERSION: Final = 1

Process = Literal["worker", "engine core"]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of a file."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Site(NamedTuple):
    """A class or a function, and where it stands or what it does there."""

    name: str
    place: Place

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"

    def as_json(self) -> dict[str, Any]:
        """The form for machines."""
        return {"name": self.name, "path": self.place.path, "line": self.place.line}


class Shared(NamedTuple):
    """Where a worker writes to the engine core's own object, and where to a copy.

    Attributes:
        together: Classes that do a worker's work in the engine core's process.
        apart: Functions that start processes for it, at the line of the start.
    """

    together: tuple[Site, ...]
    apart: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One field whose value, settled after the configuration was copied, does not reach who reads it.

    Attributes:
        field: `section.field`.
        write: Where it is written.
        process: Who writes it.
        reason: What is missing, in one sentence.
        read: Where the front end reads it once the engines are ready.
        carried_by: The message that carries it, or a value of it that is not the written one; None without any.
        applied: Where the client takes it over; None where it does not.
        more: Further writes.
        sharing: Where it is carried nevertheless; None where it nowhere is.
    """

    field: str
    write: Place
    process: Process
    reason: str
    read: Place
    carried_by: str | None
    applied: Place | None
    more: tuple[Place, ...] = ()
    sharing: Shared | None = None

    def as_json(self) -> dict[str, Any]:
        """The form for machines."""
        found = {
            "field": self.field,
            "path": self.write.path,
            "line": self.write.line,
            "process": self.process,
            "reason": self.reason,
            "read_at": str(self.read),
            "carried_by": self.carried_by,
            "applied_at": None if self.applied is None else str(self.applied),
        }
        if self.sharing is not None:
            found["carried_under"] = [site.as_json() for site in self.sharing.together]
            found["not_carried_under"] = [site.as_json() for site in self.sharing.apart]
        return found


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was looked at.

    Attributes:
        files: Files read.
        unread: Files that could not be.
        fields: Fields of the configuration.
        writes: Assignments to them seen anywhere.
        placed: Process -> assignments that run there after the copy; `before the copy` for those that run earlier.
        undecided: Why an assignment or a call was not followed -> how often.
        channels: Message -> fields of the configuration that it brings to the client.
        left: What is no part of the product, and was not read.
    """

    files: int
    unread: tuple[Unread, ...]
    fields: int
    writes: int
    placed: Mapping[str, int]
    undecided: Mapping[str, int]
    channels: Mapping[str, int]
    left: tuple[Left, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """An audit of source.

    Attributes:
        root: The tree.
        findings: By field.
        partly: By field, what is carried where the worker runs in the engine core's process, and not elsewhere.
        coverage: What was looked at.
    """

    root: str
    findings: tuple[Finding, ...]
    partly: tuple[Finding, ...]
    coverage: Coverage

    def as_json(self) -> dict[str, Any]:
        """The versioned form for machines (`docs/schemas/sync-source.json`)."""
        coverage = self.coverage
        return {
            "schema": SCHEMA_VERSION,
            "root": self.root,
            "findings": [finding.as_json() for finding in self.findings],
            "partly_carried": [finding.as_json() for finding in self.partly],
            "coverage": {
                "files": coverage.files,
                "unread": [{"path": item.path, "line": item.line, "why": item.why} for item in coverage.unread],
                "fields": coverage.fields,
                "writes": coverage.writes,
                "placed": dict(coverage.placed),
                "undecided": dict(coverage.undecided),
                "channels": dict(coverage.channels),
                "no_product": [
                    {"kind": left.kind, "files": left.files, "where": list(left.where)} for left in coverage.left
                ],
            },
        }
