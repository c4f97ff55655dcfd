"""Messages that an engine's source can refuse a configuration with, read out of the source without running it."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from staticfire.harness.check.negative import Template

PLACES: Final = (
    "config",
    "engine/arg_utils.py",
    "model_executor/models/config.py",
    "platforms",
    "transformers_utils/config.py",
)
"""Where vLLM decides about configurations, inside its package."""


def read(package: Path) -> tuple[Template, ...]:
    """Texts of `raise` and `assert`, with `{}` for each value, sorted.

    Args:
        package: The folder of the engine's package.
    """
    found: set[Template] = set()
    for name in PLACES:
        place = package / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            try:
                tree = ast.parse(file.read_bytes())
            except (OSError, SyntaxError, ValueError, RecursionError):
                continue
            found.update(one for one in _all(tree) if one.text.strip("{} "))
    return tuple(sorted(found, key=lambda one: (one.text, one.exception)))


def _all(tree: ast.AST) -> Iterator[Template]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            made = node.exc.func
            name = made.id if isinstance(made, ast.Name) else getattr(made, "attr", "")
            yield Template(name, _text(node.exc.args[0]))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield Template("AssertionError", _text(node.msg))


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(value) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left) + _text(right)
        case _:
            return "{}"
