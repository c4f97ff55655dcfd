"""The keywords of the engine's arguments, read out of its source."""

import ast
from pathlib import Path
from typing import Final

PLACE: Final = "engine/arg_utils.py"
_CLASS: Final = "EngineArgs"


def names(package: Path, *, offline: bool = False) -> frozenset[str]:
    """Fields of the classes of arguments; none where the source is not as expected.

    Args:
        package: The folder of the engine's package.
        offline: Leave out those that only a server's arguments have.
    """
    try:
        tree = ast.parse((package / PLACE).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return frozenset()
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and _wanted(node.name, offline))
    fields = (item.target for node in classes for item in node.body if isinstance(item, ast.AnnAssign))
    return frozenset(field.id for field in fields if isinstance(field, ast.Name))


def _wanted(name: str, offline: bool) -> bool:
    return name == _CLASS if offline else name.endswith(_CLASS)
