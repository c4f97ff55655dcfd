"""The text that decides what a kernel compiles to: its module and what that imports of ours. Imports nothing heavy."""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from staticfire import kernels

_OURS = "staticfire.kernels."
_ROOT = Path(kernels.__file__).parent


@cache
def digest(module: str) -> str:
    """Digest the sources of a module and of those of our kernels that it imports, directly or not.

    Args:
        module: Its dotted name.

    Returns:
        A hexadecimal digest.
    """
    hashed = hashlib.sha256()
    for name in sorted(_closure(module)):
        hashed.update(f"{name}\0".encode() + _path(name).read_bytes() + b"\0")
    return hashed.hexdigest()


def where(kernel: str) -> tuple[Path, int]:
    """Find a function.

    Args:
        kernel: `package.module:function`.

    Returns:
        (its file, the line of its `def`).

    Raises:
        ValueError: The module has no such function.
    """
    module, _, name = kernel.partition(":")
    path = _path(module)
    for node in _tree(path).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return path, node.lineno
    raise ValueError(f"{module} has no function {name}")


def _closure(module: str) -> set[str]:
    found, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(_tree(_path(name)))
    return found


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith(_OURS))
        elif isinstance(node, ast.ImportFrom) and not node.level and f"{node.module}.".startswith(_OURS):
            names = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (name for name in names if name.startswith(_OURS) and _candidates(name))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


def _candidates(module: str) -> list[Path]:
    """Files of a module, without importing its parents; none for what is no module."""
    base = _ROOT.joinpath(*module.removeprefix(_OURS).split("."))
    return [path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()]


@cache
def _path(module: str) -> Path:
    if not module.startswith(_OURS) or not _candidates(module):
        raise ValueError(f"{module} is none of our kernels' modules")
    return _candidates(module)[0]
