"""The keywords of the engine's arguments, read out of its source."""

import ast
from pathlib import Path
from typing import Final

PLACE: Final = "engine/arg_utils.py"
_CLASS: Final = "EngineArgs"


def names(package: Path) -> frozenset[str]:
    """Fields of the classes of arguments; none where the source is not as expected.

    Args:
        package: The folder of the engine's package.
    """
    try:
        tree = ast.parse((package / PLACE).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return frozenset()
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name.endswith(_CLASS))
    fields = (item.target for node in classes for item in node.body if isinstance(item, ast.AnnAssign))
    return frozenset(field.id for field in fields if isinstance(field, ast.Name))
