"""Which lines of a test suite assert something. Pure: source in, line numbers out."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

NAMES: Final = re.compile(
    r"^(assert|check|expect|verify|ensure)|^(raises|warns|deprecated_call|fail|xfail|approx_equal)$"
)
"""Calls of functions so named assert, whatever they belong to: `np.testing.assert_allclose`, `pytest.raises`."""


@cache
def asserting_lines(path: str) -> frozenset[int]:
    """Lines of a file that assert; empty for what cannot be read or parsed."""
    try:
        tree = ast.parse(Path(path).read_bytes(), filename=path)
    except (OSError, SyntaxError, ValueError):
        return frozenset()
    return frozenset(_lines(tree))


def _lines(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) or (isinstance(node, ast.Call) and _asserts(node.func)):
            yield node.lineno


def _asserts(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return NAMES.search(name) is not None
