"""The sources of one scan as modules: parsed when needed, names and imports resolved without importing."""

import ast
import gc
import re
import sys
import warnings
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

from staticfire.harness.scan import forms, plugin
from staticfire.harness.scan.base import Limits, Location
from staticfire.harness.scan.budget import Budget
from staticfire.harness.stamps import Stamps

MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini")
"""A folder with one of these is the root that pytest would find."""

_DEFINITION = re.compile(r"^(?:async[ \t]+)?(def|class)[ \t]+(\w+)|^@", re.MULTILINE)


class Unparsable(Exception):  # noqa: N818
    """A file that cannot be read as Python.

    Args:
        line: Where, 0 if nowhere in particular.
        why: What is wrong.
    """

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line
        self.why = why


class Module:
    """One Python file.

    Attributes:
        path: Its file.
        shown: Its path as locations name it.
        tree: Its syntax tree.
        names: Top-level name -> indices of the statements that bind or change it.
        values: Names already evaluated.
        fixtures: Names already looked for among the module's fixtures: what was found, or None.
        ran: Indices of the statements already evaluated.
        marks: What its `pytestmark` puts over every test, once that was asked.
        budget: For its own statements, whoever asks for them: no file pays for what another one was first to ask.
    """

    def __init__(self, path: Path, shown: str, text: str, tree: ast.Module, budget: Budget) -> None:
        self.path = path
        self.shown = shown
        self.lines = text.split("\n")
        self.text = text
        self.tree = tree
        self.values: dict[str, Any] = {}
        self.fixtures: dict[str, Any] = {}
        self.ran: set[int] = set()
        self.budget = budget
        self.marks: list[ast.expr] | None = None
        self._places: dict[int, Location] = {}
        self._excerpts: dict[int, str] = {}
        self.stars: list[ast.ImportFrom] = []
        self.names: dict[str, list[int]] = {}
        for index, statement in enumerate(tree.body):
            for name in bound_names(statement):
                self.names.setdefault(name, []).append(index)
            if isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names):
                self.stars.append(statement)
        self._starts: list[int] = []
        self._mentions: bool | None = None
        self._enclosing: dict[int, str] | None = None
        self.functions: list[tuple[ast.FunctionDef | ast.AsyncFunctionDef, tuple[ast.ClassDef, ...]]] = []
        self._index(tree.body, ())

    def _index(self, body: list[ast.stmt], owners: tuple[ast.ClassDef, ...]) -> None:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                self.functions.append((statement, owners))
            elif isinstance(statement, ast.ClassDef):
                self._index(statement.body, (*owners, statement))
            elif isinstance(statement, ast.If | ast.Try | ast.With):
                self._index(list(_nested(statement)), owners)

    def place(self, node: Any) -> Location:
        """Where a node stands, in characters."""
        found = self._places.get(id(node))
        if found is None:
            found = self._places[id(node)] = self._place(node)
        return found

    def _place(self, node: Any) -> Location:
        return Location(
            self.shown,
            node.lineno,
            self._column(node.lineno, node.col_offset) + 1,
            node.end_lineno or node.lineno,
            self._column(node.end_lineno or node.lineno, node.end_col_offset or 0) + 1,
        )

    def _column(self, line: int, offset: int) -> int:
        if not 0 < line <= len(self.lines):
            return offset
        text = self.lines[line - 1]
        if text.isascii():
            return offset
        return len(text.encode()[:offset].decode(errors="ignore"))

    def excerpt(self, node: Any) -> str:
        """The source of a node on one line, shortened."""
        found = self._excerpts.get(id(node))
        if found is None:
            found = self._excerpts[id(node)] = self._excerpt(node)
        return found

    def _excerpt(self, node: Any, limit: int = 80) -> str:
        last = min(node.end_lineno or node.lineno, node.lineno + 5)
        parts = self.lines[node.lineno - 1 : last]
        if not parts:
            return type(node).__name__
        if last == node.end_lineno:
            parts[-1] = parts[-1][: self._column(last, node.end_col_offset or 0)]
        parts[0] = parts[0][self._column(node.lineno, node.col_offset) :]
        text = " ".join(" ".join(parts).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def lines_with(self, pattern: re.Pattern[str], openings: Iterable[str]) -> list[int]:
        """1-based lines on which a pattern occurs.

        Args:
            pattern: What is looked for.
            openings: Texts that it can start with.
        """
        return sorted({self.line_at(found.start()) for found in forms.occurrences(self.text, pattern, openings)})

    def line_at(self, position: int) -> int:
        """1-based line of an offset in the text."""
        if not self._starts:
            self._starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        return bisect_right(self._starts, position)

    def enclosing(self, line: int) -> str:
        """Qualified name of the innermost function that a line stands in, empty where there is none."""
        if self._enclosing is None:
            self._enclosing = {}
            for function, owners in self.functions:
                name = ".".join([*(owner.name for owner in owners), function.name])
                self._enclosing.update(dict.fromkeys(range(function.lineno, (function.end_lineno or 0) + 1), name))
        return self._enclosing.get(line, "")

    @property
    def mentions(self) -> bool:
        """Whether the text names anything that constructs an engine."""
        if self._mentions is None:
            self._mentions = forms.mentioned(self.text.encode())
        return self._mentions


def _nested(statement: ast.stmt) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        found.extend(getattr(statement, name, []))
    for handler in getattr(statement, "handlers", []):
        found.extend(handler.body)
    return found


def target_names(target: ast.expr) -> list[str]:
    """Names that an assignment target binds, and bases of the attributes and elements that it changes."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple | ast.List):
        return [name for element in target.elts for name in target_names(element)]
    if isinstance(target, ast.Starred):
        return target_names(target.value)
    while isinstance(target, ast.Attribute | ast.Subscript):
        target = target.value
    return [target.id] if isinstance(target, ast.Name) else []


def pattern_names(pattern: ast.pattern) -> list[str]:
    """Names that a pattern of a `match` statement binds."""
    found = []
    for node in ast.walk(pattern):
        name = getattr(node, "rest", None) if isinstance(node, ast.MatchMapping) else getattr(node, "name", None)
        if isinstance(name, str):
            found.append(name)
    return found


def names_in(body: list[ast.stmt]) -> list[str]:
    """Names that some statements bind or change."""
    return [name for statement in body for name in bound_names(statement)]


def bound_names(statement: ast.stmt) -> list[str]:  # noqa: C901, PLR0912 - one kind of statement, one line
    """Names that a statement binds or changes, nested blocks included."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Assign():
            return [name for target in statement.targets for name in target_names(target)]
        case ast.AugAssign() | ast.AnnAssign():
            return target_names(statement.target)
        case ast.Import():
            return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
        case ast.ImportFrom():
            return [alias.asname or alias.name for alias in statement.names]
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return [name]
        case ast.Delete():
            return [name for target in statement.targets for name in target_names(target)]
        case _:
            names: list[str] = []
            if isinstance(statement, ast.For | ast.AsyncFor):
                names += target_names(statement.target)
            if isinstance(statement, ast.With | ast.AsyncWith):
                for item in statement.items:
                    if item.optional_vars is not None:
                        names += target_names(item.optional_vars)
            for inner in _nested(statement):
                names += bound_names(inner)
            for case in getattr(statement, "cases", []):
                names += pattern_names(case.pattern)
                for inner in case.body:
                    names += bound_names(inner)
            return names


def parse(data: bytes, limits: Limits) -> tuple[str, ast.Module]:
    """Parse a file, whatever it holds.

    Raises:
        Unparsable: It is too large or no Python.
    """
    if len(data) > limits.file_bytes:
        raise Unparsable(0, f"larger than {limits.file_bytes:,} bytes")
    if data.count(b",") > limits.commas:
        raise Unparsable(0, f"more than {limits.commas:,} commas: data rather than code")
    collecting = gc.isenabled()
    gc.disable()  # a syntax tree is millions of small objects without cycles; collecting halves the speed
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = _decode(data)
            return text, ast.parse(text)
    except SyntaxError as error:
        raise Unparsable(error.lineno or 0, f"not Python {_version()}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError, UnicodeError, LookupError) as error:
        raise Unparsable(0, f"cannot be parsed: {type(error).__name__}: {error}"[:200]) from None
    finally:
        if collecting:
            gc.enable()


_CODING = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


def _decode(data: bytes) -> str:
    for line in data.split(b"\n", 2)[:2]:
        if found := _CODING.match(line):
            return data.decode(found[1].decode())
    return data.decode("utf-8-sig")


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


class Sources:
    """Every file that a scan looks into, by path, and how names lead from one to another.

    Args:
        limits: Bounds on what is read.
        root: Locations name files below it by their path from it.
        keep: Syntax trees kept at a time.
        stamps: Takes the state of each file before it is read.
    """

    def __init__(self, limits: Limits, root: Path | None = None, keep: int = 64, stamps: Stamps | None = None) -> None:
        self._stamps = stamps or Stamps()
        self.limits = limits
        self._root = root
        self._edges: dict[Path, set[Path]] = {}
        self._imported: set[Path] = set()
        self._modules: OrderedDict[Path, Module | None] = OrderedDict()
        self._keep = keep
        self._exists: dict[Path, bool] = {}
        self._conftests: dict[Path, tuple[Path, ...]] = {}
        self._ancestors: dict[Path, list[Path]] = {}
        self._resolved: dict[tuple[Path, str], Path | None] = {}

    def shown(self, path: Path) -> str:
        """How locations name a file."""
        if self._root is not None and path.is_relative_to(self._root):
            return path.relative_to(self._root).as_posix()
        return path.as_posix()

    def load(self, path: Path) -> Module | None:
        """The module of a file, None if it cannot be read."""
        if path in self._modules:
            self._modules.move_to_end(path)
            return self._modules[path]
        module: Module | None = None
        try:
            module = self.read(path)
        except (Unparsable, OSError):
            module = None
        self._modules[path] = module
        while len(self._modules) > self._keep:
            self._modules.popitem(last=False)
        return module

    def read(self, path: Path) -> Module:
        """Parse a file.

        Raises:
            Unparsable: It is no Python that can be read.
        """
        self._stamps.of(path)
        text, tree = parse(path.read_bytes(), self.limits)
        try:
            return Module(path, self.shown(path), text, tree, self.limits.budget())
        except RecursionError:
            raise Unparsable(0, "nested too deeply") from None

    def release(self, module: Module) -> None:
        """Free a module that no other file imports: its tree holds far more memory than what was read from it."""
        if module.path not in self._imported and module.path.name != "conftest.py":
            self._modules.pop(module.path, None)
            module.values.clear()
            module.fixtures.clear()
            module.tree.body.clear()
            module.functions.clear()

    def dependencies(self, path: Path) -> set[Path]:
        """Every file that what was read from a file can depend on, itself included."""
        found: set[Path] = set()
        pending = [path, *self.conftests(path)]
        while pending:
            item = pending.pop()
            if item not in found:
                found.add(item)
                pending.extend(self._edges.get(item, ()))
        return found

    def find(self, importer: Path, level: int, name: str) -> Path | None:
        """The file of a module as `importer` would import it, None if it is not among the sources."""
        top = name.partition(".")[0]
        if level == 0 and (top in forms.ENGINE_PACKAGES or top in sys.stdlib_module_names):
            return None
        key = (importer.parent, "." * level + name)
        if key not in self._resolved:
            self._resolved[key] = self._find(importer, level, name)
        found = self._resolved[key]
        if found is not None:
            self._edges.setdefault(importer, set()).add(found)
            self._imported.add(found)
        return found

    def _find(self, importer: Path, level: int, name: str) -> Path | None:
        parts = name.split(".") if name else []
        if level:
            base = importer.parent
            for _ in range(level - 1):
                base = base.parent
            return self._file(base, parts)
        if not parts:
            return None
        for base in self.ancestors(importer.parent):
            # A folder inside a package is never on the path itself.
            if self._exists_quietly(base / "__init__.py"):
                continue
            if (found := self._file(base, parts)) is not None:
                return found
        return plugin.module(name)

    def _file(self, base: Path, parts: list[str]) -> Path | None:
        target = base.joinpath(*parts)
        for candidate in (target.with_name(target.name + ".py") if parts else None, target / "__init__.py"):
            if candidate is not None and self._exists_quietly(candidate):
                return candidate
        return None

    def _exists_quietly(self, path: Path) -> bool:
        known = self._exists.get(path)
        if known is None:
            known = self._exists[path] = path.is_file()
        return known

    def ancestors(self, folder: Path) -> list[Path]:
        """A folder and those above it, up to the project's root, closest first."""
        found = self._ancestors.get(folder)
        if found is None:
            found = self._ancestors[folder] = []
            for candidate in (folder, *folder.parents)[:14]:
                found.append(candidate)
                if any(self._exists_quietly(candidate / marker) for marker in MARKERS) or (candidate / ".git").exists():
                    break
        return found

    def conftests(self, path: Path) -> tuple[Path, ...]:
        """The conftest files that pytest would load for a file, closest first."""
        folder = path.parent
        if folder not in self._conftests:
            candidates = [folder / "conftest.py" for folder in self.ancestors(folder)]
            self._conftests[folder] = tuple(item for item in candidates if self._exists_quietly(item))
        return self._conftests[folder]
