"""Which lines of a test suite assert something. Pure: source in, line numbers out."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

NAMES: Final = re.compile(
    r"^(assert|check|expect|verify|ensure)|^(raises|warns|deprecated_call|approx_equal|(op|grad|gradgrad)check|spawn)$"
)
"""Calls of functions so named assert, whatever they belong to: `np.testing.assert_allclose`, `pytest.raises`,
`torch.library.opcheck`; `torch.multiprocessing.spawn` raises what its children raised."""
GIVE_UP: Final = re.compile(r"^(fail|xfail)$")
"""Calls that end a test, as `raise` does: the branch that holds one asserts, whether it is taken or not."""


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
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _branches(node)):
            # what is compared may stand on lines of its own, and only those are executed
            yield from range(node.lineno, (node.test.end_lineno or node.lineno) + 1)
        elif (isinstance(node, ast.Call) and _asserts(node)) or (isinstance(node, ast.Try) and _branches(node)):
            yield node.lineno


def _asserts(call: ast.Call) -> bool:
    return NAMES.search(_name(call.func)) is not None or any(
        word.arg == "check" and isinstance(word.value, ast.Constant) and word.value.value is True
        for word in call.keywords  # subprocess.run(..., check=True)
    )


def _branches(node: ast.If | ast.Try) -> bool:
    """Whether one way through a statement ends in a failure: `if wrong: raise`, `try … except: pytest.fail()`."""
    ways = [node.body, node.orelse]
    if isinstance(node, ast.Try):
        ways += [handler.body for handler in node.handlers]
    return any(_gives_up(statement) for way in ways for statement in way)


def _gives_up(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return raised is None or "Skip" not in _name(raised)
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and GIVE_UP.search(_name(call.func)) is not None


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else str(getattr(function, "id", ""))
