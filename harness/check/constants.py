"""What names of the engine's classes stand for: members of enumerations, and constants; read out of its source."""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from staticfire.harness.scan.base import Constant

PLACES: Final = ("config", "engine/arg_utils.py", "platforms/interface.py", "v1/attention")
"""Where vLLM defines the classes whose attributes are typed as values, inside its package."""
_TOLD: Final = (b"Enum", b"ClassVar")
"""A file without any of these defines neither."""
_ENUMS: Final = frozenset({"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum"})
_MIXED: Final = frozenset({"IntEnum", "IntFlag", "StrEnum", "str", "int", "float"})
"""Bases that make a member equal to its value."""
_BY_NAME: Final = re.compile(rb"\b(\w+)\[\w+(?:\.upper\(\))?\]")
"""How a validator finds a member that is typed as text."""


def read(package: Path) -> list[str]:
    """Every constant as a row of JSON, sorted: class, name, value, how it is typed, whether it is a member.

    Args:
        package: The folder of the engine's package.
    """
    rows: dict[tuple[str, str], list[object]] = {}
    doubled: set[tuple[str, str]] = set()
    texts = {file: data for file in _files(package) if (data := _data(file))}
    found_by_name = {name.decode() for data in texts.values() for name in _BY_NAME.findall(data)}
    for data in texts.values():
        if not any(word in data for word in _TOLD):
            continue
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                for row in _constants(node, found_by_name):
                    key = (node.name, str(row[1]))
                    if key in rows and rows[key] != row:
                        doubled.add(key)
                    rows[key] = row
    return [json.dumps(rows[key]) for key in sorted(rows) if key not in doubled]


def constants(rows: list[str]) -> Mapping[str, Constant]:
    """`Class.NAME` -> what it stands for, of what `read` gave."""
    found: dict[str, Constant] = {}
    for row in rows:
        owner, name, value, typed, member = json.loads(row)
        found[f"{owner}.{name}"] = Constant(value, typed, member)
    return found


def _files(package: Path) -> Iterator[Path]:
    for name in PLACES:
        place = package / name
        yield from sorted(place.rglob("*.py")) if place.is_dir() else [place]


def _data(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _constants(node: ast.ClassDef, by_name: set[str]) -> Iterator[list[object]]:
    bases = {base.id if isinstance(base, ast.Name) else getattr(base, "attr", "") for base in node.bases}
    member = bool(bases & _ENUMS)
    target: ast.expr
    value: ast.expr | None
    for statement in node.body:
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
        elif isinstance(statement, ast.AnnAssign) and "ClassVar" in ast.dump(statement.annotation):
            target, value = statement.target, statement.value
        else:
            continue
        if not isinstance(target, ast.Name) or not target.id.isupper() or value is None:
            continue
        found = _literal(value)
        # A plain enumeration is told by its value, as pydantic does, unless the engine looks its members up by name.
        named = member and not bases & _MIXED and node.name in by_name
        if named or found is not None:
            yield [node.name, target.id, found, target.id if named else found, member]


def _literal(node: ast.expr) -> object:
    """A text or a number that is written out; None for anything else."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, str | int | float) else None


__all__ = ["constants", "read"]
