"""The committed table of disagreements that have a reason; one row explains those that it describes and no others."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, get_args

from staticfire.harness.differential.base import Disagreement, Kind, Subject
from staticfire.harness.errors import InputError, nearest

TABLE: Final = "explained.toml"
TYPED: Final = "typed"
"""As a condition on a keyword: whatever is typed for it."""
_KEYS: Final = ("name", "engines", "devices", "kind", "subject", "because", "says", "when", "models", "reason")
_LISTS: Final = ("engines", "devices", "because", "models")
_NEEDED: Final = ("name", "engines", "kind", "because", "reason")


@dataclass(frozen=True, slots=True)
class Row:
    """One explained kind of disagreement.

    Attributes:
        name: Short, for the report.
        engines: Releases that it is about, such as `vllm==0.33.0`.
        devices: Names of devices; empty for all.
        kind: Who refuses, or that a value differs.
        subject: Which part of the answer.
        because: Our codes, the engine's files, or the names of the values: what the group's origin begins with.
        says: A regular expression in the engine's words, or its value; empty for any.
        when: Keyword -> the values for which it holds; `typed` for any typed value.
        models: Models that it is about; empty for all.
        reason: Why the two differ, in a sentence.
    """

    name: str
    engines: tuple[str, ...]
    kind: Kind
    because: tuple[str, ...]
    reason: str
    devices: tuple[str, ...] = ()
    subject: Subject = "configuration"
    says: str = ""
    when: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ()

    def applies(self, engine: str, device: str) -> bool:
        """Whether it is about this engine on this device."""
        return engine in self.engines and (not self.devices or device in self.devices)

    def explains(self, one: Disagreement) -> bool:
        """Whether it describes a disagreement, engine and device aside."""
        return (
            one.kind == self.kind
            and one.subject == self.subject
            and any(_begins(one.because, origin) for origin in self.because)
            and re.search(self.says, str(one.theirs)) is not None
            and (not self.models or one.case.model in self.models)
            and all(_holds(one.case.typed, name, wanted) for name, wanted in self.when.items())
        )


def _begins(found: str, origin: str) -> bool:
    """Whether an origin is the one that a row names, but for the line."""
    return found == origin or found.startswith(f"{origin}:")


def _holds(typed: Mapping[str, Any], name: str, wanted: Any) -> bool:
    if wanted == TYPED:
        return name in typed
    return typed.get(name) in wanted if isinstance(wanted, list) else typed.get(name) == wanted


@dataclass(frozen=True, slots=True)
class Explained:
    """What rows of the table leave of a run's disagreements.

    Attributes:
        open: Disagreements that no row explains.
        counts: Each row that applies, and how many it explains; a disagreement counts for the first row that does.
    """

    open: tuple[Disagreement, ...]
    counts: tuple[tuple[Row, int], ...]

    @property
    def stale(self) -> tuple[Row, ...]:
        """Rows that apply and explain nothing."""
        return tuple(row for row, count in self.counts if not count)


def subtract(disagreements: Iterable[Disagreement], rows: Sequence[Row], engine: str, device: str) -> Explained:
    """Take out what the table explains."""
    applying = [row for row in rows if row.applies(engine, device)]
    counts = [0] * len(applying)
    left = []
    for one in disagreements:
        index = next((index for index, row in enumerate(applying) if row.explains(one)), None)
        if index is None:
            left.append(one)
        else:
            counts[index] += 1
    return Explained(tuple(left), tuple(zip(applying, counts, strict=True)))


def table() -> tuple[Row, ...]:
    """The committed table."""
    text = files("staticfire.harness.differential").joinpath(TABLE).read_text(encoding="utf-8")
    return parse(text, f"harness/differential/{TABLE}")


def parse(text: str, where: str) -> tuple[Row, ...]:
    """Read a table and report all its faults at once.

    Args:
        text: The TOML text: `[[row]]` after `[[row]]`.
        where: The file's name, for messages.

    Raises:
        InputError: Broken TOML, unknown or missing keys, impossible values, a name twice.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: {error}.") from error
    entries = document.get("row", [])
    faults = [f"unknown key {key!r}.{nearest(key, ('row',))}" for key in document if key != "row"]
    faults += [f"row {index}: {fault}" for index, entry in enumerate(entries, 1) for fault in _faults(entry)]
    named = [str(entry.get("name")) for entry in entries]
    faults += [f"two rows are named {name!r}" for name in sorted({name for name in named if named.count(name) > 1})]
    if faults:
        raise InputError(f"{where}: " + "; ".join(faults))
    return tuple(_row(entry) for entry in entries)


def _faults(entry: Mapping[str, Any]) -> list[str]:
    faults = [f"unknown key {key!r}.{nearest(key, _KEYS)}" for key in entry if key not in _KEYS]
    faults += [f"{key} is missing" for key in _NEEDED if not entry.get(key)]
    for key, allowed in (("kind", get_args(Kind)), ("subject", get_args(Subject))):
        if key in entry and entry[key] not in allowed:
            faults.append(f"{key} must be one of {', '.join(allowed)}, got {entry[key]!r}")
    faults += [f"{key} must be a list" for key in _LISTS if key in entry and not isinstance(entry[key], list)]
    try:
        re.compile(str(entry.get("says", "")))
    except re.error as error:
        faults.append(f"says is no regular expression: {error}")
    return faults


def _row(entry: Mapping[str, Any]) -> Row:
    lists = {key: tuple(entry[key]) for key in _LISTS if key in entry}
    return Row(**{**entry, **lists})
