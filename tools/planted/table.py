"""The table of planted faults: what is changed, which relation must see it, and what a user would meet."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
TABLE: Final = Path(__file__).with_name("faults.toml")
COLD: Final = "cold"
"""What sees a fault that needs no relation: the plain run of a cell, compared with transformers."""

_KEYS = {"name", "meets", "seen_by", "says", "cell", "edit"}
_EDIT_KEYS = {"file", "old", "new"}


class TableError(Exception):
    """The table does not describe the sources as they are; all reasons at once."""


@dataclass(frozen=True)
class Edit:
    """One replacement in one file.

    Attributes:
        file: Below the root of the repository.
        old: A text that stands there exactly once.
        new: What takes its place.
    """

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        """Make the replacement in a copy of the repository.

        Raises:
            TableError: The text is not there exactly once.
        """
        path = root / self.file
        text = path.read_text(encoding="utf-8")
        if (fault := self.fault(text)) is not None:
            raise TableError(fault)
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")

    def fault(self, text: str) -> str | None:
        """Why the replacement cannot be made in a file of that text; None where it can."""
        count = text.count(self.old)
        if count != 1:
            return f"{self.file}: the text to replace stands there {count} times, not once: {self.old!r}"
        return f"{self.file}: the replacement changes nothing" if self.old == self.new else None


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        name: Reads aloud.
        meets: What a user of such an engine would meet.
        seen_by: The relation that must see it, or `cold`.
        says: A part of the message that it must be seen by: the fault is red for the right reason.
        cell: The cell of `matrices/hybrid.toml` that is run.
        edits: What is changed.
    """

    name: str
    meets: str
    seen_by: str
    says: str
    cell: str
    edits: tuple[Edit, ...]


def read(path: Path = TABLE, root: Path = ROOT, relations: Sequence[str] = ()) -> tuple[Fault, ...]:
    """Read the table and hold it to the sources.

    Args:
        path: The table.
        root: The repository whose sources are changed.
        relations: Names that `seen_by` may have, besides `cold`.

    Raises:
        TableError: An entry lacks a key or has an unknown one, two have one name, no such relation, or a text to
            replace does not stand in its file exactly once.
    """
    faults, wrong = [], []
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("fault", []):
        name = str(entry.get("name", "an entry without a name"))
        wrong += [f"{name}: {reason}" for reason in _shape(entry, relations)]
        edits = tuple(Edit(*(str(edit.get(key, "")) for key in ("file", "old", "new"))) for edit in _edits(entry))
        wrong += [f"{name}: {reason}" for edit in edits if (reason := _misfit(edit, root)) is not None]
        texts = {key: str(entry.get(key, "")) for key in ("name", "meets", "seen_by", "says", "cell")}
        faults.append(Fault(**texts, edits=edits))
    names = [fault.name for fault in faults]
    wrong += [
        f"{name}: two entries have this name" for name in sorted({name for name in names if names.count(name) > 1})
    ]
    if wrong:
        raise TableError(f"{path.name}:\n" + "\n".join(wrong))
    return tuple(faults)


def _edits(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = entry.get("edit")
    return found if isinstance(found, list) else []


def _shape(entry: Mapping[str, Any], relations: Sequence[str]) -> list[str]:
    wrong = [f"no {key}" for key in sorted(_KEYS - entry.keys())]
    wrong += [f"unknown key {key}" for key in sorted(entry.keys() - _KEYS)]
    wrong += [f"an edit has the keys {sorted(edit)}" for edit in _edits(entry) if edit.keys() != _EDIT_KEYS]
    if relations and entry.get("seen_by") not in {COLD, *relations}:
        wrong.append(f"seen_by={entry.get('seen_by')!r}: no such relation; known: {', '.join((COLD, *relations))}")
    return wrong


def _misfit(edit: Edit, root: Path) -> str | None:
    path = root / edit.file
    if not path.is_file():
        return f"{edit.file}: no such file"
    if edit.file.split("/")[0] not in ("engine", "kernels"):
        return f"{edit.file}: faults are planted in the engine and its kernels, never in what judges them"
    return edit.fault(path.read_text(encoding="utf-8"))
