"""Which values a refusal is about: those that the conditions around the raising line, and its message, read.

The condition is looked up in the source of the engine's own function; nothing lists fields or rules.
"""

import ast
import dataclasses
import linecache
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import Any

from .flatten import ABSENT, plain
from .standin import engine_path

_MOST_VALUES = 10
_MOST_FRAMES = 4
_TREES: dict[str, Any] = {}


def values(error: BaseException, typed: Any = ()) -> list[dict[str, Any]]:
    """Find the values.

    Args:
        error: What the engine raised.
        typed: Keywords of the question; local variables of these names count as well.

    Returns:
        `field` (`section.name`), its `value` when the engine refused, and whether that is the `default` of the field;
        of the innermost function of the engine that reads any.
    """
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [(frame, line) for frame, line in frames if engine_path(frame.f_code.co_filename) is not None]
    for frame, line in reversed(ours[-_MOST_FRAMES:]):
        found: dict[str, dict[str, Any]] = {}
        for expression in _expressions(frame.f_code.co_filename, line):
            for said in _read(expression, frame, set(typed)):
                found.setdefault(said["field"], said)
        if found:
            return list(found.values())[:_MOST_VALUES]
    return []


def _expressions(file: str, line: int) -> Iterator[ast.AST]:
    """Conditions under which a line runs, outermost first, and then the statement itself."""
    if file not in _TREES:
        try:
            _TREES[file] = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError, RecursionError):
            _TREES[file] = ast.Module([], [])
    node: Any = _TREES[file]
    while node is not None:
        inside = [child for child in _statements(node) if child.lineno <= line <= (child.end_lineno or child.lineno)]
        if not inside:
            break
        node = inside[0]
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        if isinstance(node, (ast.If, ast.While)):
            yield node.test
        elif not list(_statements(node)):
            yield node


def _statements(node: ast.AST) -> Iterator[Any]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        elif isinstance(child, (ast.excepthandler, getattr(ast, "match_case", ast.excepthandler))):
            yield from _statements(child)


def _read(expression: ast.AST, frame: FrameType, typed: set[str]) -> Iterator[dict[str, Any]]:
    """Fields of the engine's sections, and local variables named as a typed keyword, that an expression reads."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Attribute):
            owner = _object(node.value, frame)
            if owner is not None and (said := field_of(owner, node.attr)) is not None:
                yield said
        elif isinstance(node, ast.Name) and node.id in typed and node.id in frame.f_locals:
            value = plain(frame.f_locals[node.id])
            if value is not ABSENT:
                yield {"field": node.id, "value": value, "default": False}


def _object(node: ast.expr, frame: FrameType) -> Any:
    """What a dotted name stands for; None for anything that would have to be computed."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _object(node.value, frame)
        # Only what lies in the object: a property may compute, and raise.
        return None if owner is None else getattr(owner, "__dict__", {}).get(node.attr)
    return None


def field_of(owner: Any, name: str) -> "dict[str, Any] | None":
    """A field of a section of the engine, or of the model's configuration; None for anything else."""
    kind = type(owner)
    held = getattr(owner, "__dict__", {})
    if name not in held or (value := plain(held[name])) is ABSENT:
        return None
    if kind.__module__.startswith("transformers.") or kind.__name__ == "PretrainedConfig":
        return {"field": f"config.json.{name}", "value": value, "default": False}
    if not dataclasses.is_dataclass(kind):
        return None
    field = {one.name: one for one in dataclasses.fields(kind)}.get(name)
    if field is None:
        return None
    section = kind.__name__.removesuffix("Config")
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in section).strip("_")
    prefix = "" if kind.__name__.endswith("Args") else f"{words}."
    return {"field": f"{prefix}{name}", "value": value, "default": _is_default(field, held[name])}


def _is_default(field: Any, value: Any) -> bool:
    default = field.default
    if type(default).__name__ == "FieldInfo":  # pydantic's, which holds the default
        default = getattr(default, "default", dataclasses.MISSING)
    try:
        if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        return default is not dataclasses.MISSING and type(default) is type(value) and bool(default == value)
    except Exception:  # noqa: BLE001 -- a default that cannot be made or compared is none that is known
        return False
