"""A matrix as the rest of the harness uses it: loaded by path or name, expanded once, selected from."""

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.matrix import expand, soundness
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.matrix.document import Document, same
from staticfire.harness.matrix.faults import Faults
from staticfire.harness.matrix.locate import Lines
from staticfire.harness.matrix.reader import Reader
from staticfire.harness.matrix.spelling import spelled
from staticfire.harness.models import catalog

if TYPE_CHECKING:
    from staticfire.harness.probe.base import Probe

_NOT_MATRICES = {"devices.toml"}


@dataclass(frozen=True)
class Matrix:
    """A checked matrix.

    Attributes:
        document: What the file says.
    """

    document: Document

    @property
    def name(self) -> str:
        """The matrix's name."""
        return self.document.name

    @cached_property
    def _all(self) -> tuple[Cell, ...]:
        return expand.cells(self.document)

    def cells(self) -> tuple[Cell, ...]:
        """Every cell: by model as the file lists them, valid ones first, then by id."""
        return self._all

    def cell(self, cell_id: str) -> Cell:
        """Find a cell by its id.

        Raises:
            InputError: No such cell.
        """
        known = {cell.id: cell for cell in self._all}
        if cell_id not in known:
            raise InputError(f"{self.document.where}: no cell {cell_id!r}.{nearest(cell_id, known)}")
        return known[cell_id]

    def select(self, conditions: Sequence[tuple[str, str]]) -> tuple[Cell, ...]:
        """Cells that meet every condition; two values for one axis mean either.

        Args:
            conditions: (axis, value as text), such as `("block_size", "32")`.

        Raises:
            InputError: Unknown axis or value, or a combination that has no cell, with the reason why.
        """
        wanted: dict[str, list[Any]] = {}
        faults: list[str] = []
        for axis, text in conditions:
            try:
                wanted.setdefault(axis, []).append(self._value(axis, text))
            except InputError as fault:
                faults.append(str(fault))
        if faults:
            raise InputError("\n".join(dict.fromkeys(faults)))
        chosen = tuple(
            cell
            for cell in self._all
            if all(any(same(cell.axes[axis], v) for v in values) for axis, values in wanted.items())
        )
        if not chosen:
            raise InputError(f"{self.document.where}: {self._why_none(wanted)}")
        return chosen

    @cached_property
    def digest(self) -> str:
        """Sixteen hex digits over cells and model configurations: equal digests mean equal work."""
        content = {
            "cells": [[cell.id, cell.model, cell.config, cell.verdict, cell.rules] for cell in self._all],
            "workload": asdict(self.document.workload),
            "models": {name: catalog.load(str(name)).config for name in self.document.axes["model"]},
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def _value(self, axis: str, text: str) -> Any:
        axes = self.document.axes
        if axis not in axes:
            raise InputError(
                f"{self.document.where}: no axis named {axis!r}.{nearest(axis, axes)} Axes: {', '.join(axes)}."
            )
        known = {spelled(value): value for value in axes[axis]}
        if text not in known:
            shown = ", ".join(known)
            near = nearest(text, known)
            raise InputError(f"{self.document.where}: {text!r} is no value of axis {axis!r}.{near} Values: {shown}.")
        return known[text]

    def _why_none(self, wanted: Mapping[str, Sequence[Any]]) -> str:
        shown = ", ".join(f"{axis}={value}" for axis, values in wanted.items() for value in values)
        single = {axis: values[0] for axis, values in wanted.items() if len(values) == 1}
        for constraint in self.document.constraints:
            if set(constraint.when) <= set(single) and constraint.hits(single):
                kind = constraint.kind if constraint.rule is None else f"{constraint.kind}, {constraint.rule}"
                return f"no cell with {shown}: {constraint.reason} ({kind}, line {constraint.line})"
        return f"no cell with {shown}: the choice of cells holds no such combination; a [[seed]] would add one"


def load(path_or_name: str | Path, probe: "Probe | None" = None) -> Matrix:
    """Load a matrix and check it.

    Args:
        path_or_name: A file, or the name of one in `matrices/`, with or without `.toml`.
        probe: The engine that is asked about keywords and rule codes; our own unless given.

    Raises:
        InputError: No such file, or all faults in it, each with file, line and key.
    """
    text, where = _read(path_or_name)
    if probe is None:
        from staticfire.harness.probe.reference import ReferenceProbe  # noqa: PLC0415 -- costs pydantic

        probe = ReferenceProbe()
    return parse(text, where, probe)


def parse(text: str, where: str, probe: "Probe") -> Matrix:
    """Check the text of a matrix file.

    Raises:
        InputError: All faults, each with file, line and key.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where}: not TOML: {error}") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply to be read") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise InputError(f"{where}: not a number that can be read: {error}") from error
    faults = Faults(where, Lines(text))
    document = Reader(raw, faults, probe).read()
    faults.check()
    soundness.check(document, faults)
    faults.check()
    return Matrix(document)


def names() -> tuple[str, ...]:
    """Names of the matrices that ship with the project."""
    entries = (entry.name for entry in files("staticfire.matrices").iterdir())
    return tuple(sorted(name[:-5] for name in entries if name.endswith(".toml") and name not in _NOT_MATRICES))


def _read(path_or_name: str | Path) -> tuple[str, str]:
    path = Path(path_or_name)
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8"), str(path_or_name)
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text at byte {error.start}.") from error
    name = str(path_or_name).removesuffix(".toml")
    if name in names():
        return files("staticfire.matrices").joinpath(f"{name}.toml").read_text(
            encoding="utf-8"
        ), f"matrices/{name}.toml"
    near = nearest(path.stem, names())
    raise InputError(
        f"No matrix {str(path_or_name)!r}: no such file, and no name of ours.{near} Matrices: {', '.join(names())}."
    )
