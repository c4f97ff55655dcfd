"""What else happens in the function around a site that builds arguments only: their engine is built later."""

import ast
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from staticfire.harness.scan.base import Limits, Site
from staticfire.harness.scan.forms import ENGINE_PACKAGES
from staticfire.harness.scan.modules import Sources

ARGUMENTS_ONLY: Final = frozenset({"EngineArgs", "AsyncEngineArgs"})
DOUBT: Final = "the engine is built later in a function that replaces parts of it, or expects a refusal"
_LATER: Final = re.compile(rb"\braises\b|\bpatch\b|\bmonkeypatch\b|\bMock\b|\bMagicMock\b")
_UNKNOWN_NAME: Final = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|not (?:registered|supported|found)", re.IGNORECASE
)
_STAGED: Final = re.compile(
    r"(?:mock|fake|dummy|custom|test|my|random|stub)[_A-Z]|\w+:\w+|\w+(?:\.\w+)+$", re.IGNORECASE
)
_IMPORTS: Final = 3
"""Imports within imports that are followed."""
_PLUGIN: Final = tuple(f"{package}_" for package in ENGINE_PACKAGES)
MAX_BYTES: Final = 4_000_000


def doubt(site: Site) -> str:
    """Why a refusal by a rule may not come where the arguments are built; empty where nothing speaks for that.

    `EngineArgs(...)` alone checks no rule. What is refused is the engine built from it, often a few lines on, under
    a `raises` or a `patch` that is not around the site itself.
    """
    if site.form not in ARGUMENTS_ONLY or not site.where.path.endswith(".py"):
        return ""
    return DOUBT if _LATER.search(_around(site.where.path, site.where.line)) else ""


def registered(message: str, values: Iterable[Any]) -> str:
    """Why a name that the engine does not know may be known when the code runs; empty where nothing speaks for that.

    Args:
        message: The refusal.
        values: What is typed.
    """
    if not _UNKNOWN_NAME.search(message):
        return ""
    names = [text for text in _texts(values) if _STAGED.match(text) and text in message]
    return f"{names[0]!r} may be registered by the code itself" if names else ""


def registers(site: Site, message: str, values: Iterable[Any]) -> bool:
    """Whether the file of a site, or one that it imports, registers a name that the engine does not know.

    Args:
        site: Where it is used.
        message: The refusal.
        values: What is typed.
    """
    if not _UNKNOWN_NAME.search(message) or not site.where.path.endswith(".py"):
        return False
    names, plugin = _registered_in(site.where.path)
    return any(text in message and (plugin or text in names) for text in _texts(values))


@lru_cache(maxsize=64)
def _registered_in(path: str) -> tuple[frozenset[str], bool]:
    """Texts that calls whose names start with `register` are given, and whether a plugin of the engine is imported.

    A plugin is a package that is named after the engine, as `vllm_…`; it registers whatever it likes.
    """
    sources = Sources(Limits())
    start = Path(path).absolute()
    found: set[str] = set()
    plugin = False
    pending, seen = deque((file, _IMPORTS) for file in (start, *sources.conftests(start))), {start}
    while pending:
        file, left = pending.popleft()
        nodes = list(ast.walk(_parsed(str(file))[1]))
        found |= _given_to_register(nodes)
        for level, name in _imports(nodes) if left else ():
            plugin = plugin or (not level and name.startswith(_PLUGIN))
            inner = sources.find(file, level, name)
            if inner is not None and inner not in seen:
                seen.add(inner)
                pending.append((inner, left - 1))
    return frozenset(found), plugin


def _given_to_register(nodes: Iterable[ast.AST]) -> set[str]:
    calls = (node for node in nodes if isinstance(node, ast.Call) and _called(node).startswith("register"))
    texts = (value for call in calls for value in (*call.args, *(keyword.value for keyword in call.keywords)))
    return {text.value for text in texts if isinstance(text, ast.Constant) and isinstance(text.value, str)}


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Level and name of each module that may be imported; `from a import b` may import `a.b`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""
            yield from ((node.level, f"{node.module or ''}.{alias.name}".lstrip(".")) for alias in node.names)


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from _texts(value.values())
        elif isinstance(value, list | tuple):
            yield from _texts(value)


def _around(path: str, line: int) -> bytes:
    """Source of the function around a line; nothing where there is none."""
    lines, spans = _functions(path)
    for first, last in spans:
        if first <= line <= last:
            return b"\n".join(lines[first - 1 : last])
    return b""


@lru_cache(maxsize=64)
def _functions(path: str) -> tuple[tuple[bytes, ...], tuple[tuple[int, int], ...]]:
    data, tree = _parsed(path)
    members = [
        item for node in tree.body for item in ([node, *node.body] if isinstance(node, ast.ClassDef) else [node])
    ]
    functions = [item for item in members if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    return tuple(data.splitlines()), tuple((item.lineno, item.end_lineno or item.lineno) for item in functions)


def _parsed(path: str) -> tuple[bytes, ast.Module]:
    """A file and its tree; an empty tree where it is none, or too large."""
    try:
        data = Path(path).read_bytes()
        return data, ast.parse(data if len(data) <= MAX_BYTES else b"")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return b"", ast.parse("")
