"""A front end that was never started: an object of the engine's own class, with its own configuration classes below it.

Nothing is computed and nothing is validated: every configuration object has the declared defaults of its fields, and
the front end has what its constructor gives it before it knows anything (`None`, an empty set, an empty mapping).
Where a field has no default of its type, as one that is resolved by the constructor, a value stands in that no example
uses.
"""

import ast
import copy
import dataclasses
import inspect
import sys
import textwrap
from typing import Any, Final

from .describe import described, plain

STANDS_IN: Final = {"int": 4096, "float": 4096.0, "str": "as resolved", "bool": False}
DEEPEST: Final = 3
ABSENT: Final = object()


class Front:
    """The front end, and what it holds.

    Attributes:
        instance: What the engine's method is called on.
        settable: Path of a field that a user may have typed -> its type, as data.
        defaults: Path -> what stands there before anything is delivered.
    """

    def __init__(self, kind: type) -> None:
        """Make one.

        Args:
            kind: The class that applies the response.
        """
        bare = type(kind)(kind.__name__, (kind,), {"__abstractmethods__": frozenset()})
        bare.__abstractmethods__ = frozenset()  # type: ignore[attr-defined]
        self.instance: Any = object.__new__(bare)
        self.settable: dict[str, Any] = {}
        self.defaults: dict[str, Any] = {}
        self._pristine: list[tuple[str, Any, dict[str, Any]]] = []
        self._nodes: dict[str, Any] = {}
        self._grow("", self.instance, _given(kind), 0)

    def reset(self, typed: "dict[str, Any]") -> None:
        """Begin anew.

        Args:
            typed: Path -> what the user typed there.
        """
        for _, node, values in self._pristine:
            node.__dict__.clear()
            node.__dict__.update({name: _fresh(value) for name, value in values.items()})
        for path, value in typed.items():
            where, _, name = path.rpartition(".")
            object.__setattr__(self._nodes[where], name, value)

    def state(self) -> dict[str, Any]:
        """Path -> value, of everything that is not as it was made."""
        found = {}
        for where, node, values in self._pristine:
            for name, value in node.__dict__.items():
                before = values.get(name, ABSENT)
                if value is not before and not _same(value, before):
                    found[_join(where, name)] = plain(value)
        return found

    def _grow(self, where: str, node: Any, hints: "dict[str, tuple[Any, Any, bool]]", depth: int) -> None:
        values: dict[str, Any] = {}
        self._nodes[where] = node
        for name, (hint, declared, typed) in hints.items():
            path = _join(where, name)
            below = _configuration(hint)
            if below is not None and depth < DEEPEST and declared is not None:
                values[name] = object.__new__(below)
                self._grow(path, values[name], _declared(below), depth + 1)
                continue
            shape = described(hint)
            unresolved = declared is ABSENT or (declared is None and not _allows_none(shape))
            default = STANDS_IN.get(shape["is"], declared) if unresolved else declared
            if default is ABSENT:
                continue
            values[name] = default
            self.defaults[path] = plain(default)
            if typed and shape["is"] != "other":
                self.settable[path] = shape
        self._pristine.append((where, node, values))


def _declared(kind: type) -> "dict[str, tuple[Any, Any, bool]]":
    """Field -> its type, its default, and whether a user may give it, of a configuration class."""
    hints = _hints(kind)
    found = {}
    for field in dataclasses.fields(kind):
        hint = hints.get(field.name, field.type)
        found[field.name] = (hint, _default(field, hint), field.init)
    return found


def _default(field: Any, hint: Any) -> Any:
    default, factory = field.default, field.default_factory
    if hasattr(default, "default_factory") and hasattr(default, "default"):  # what pydantic puts in its place
        default, factory = default.default, default.default_factory
    if _configuration(hint) is not None and (default is None or _is_missing(default)):
        return ABSENT  # the constructor is always given one
    if not _is_missing(default):
        return default
    return factory() if factory in (dict, list, set) else ABSENT


def _is_missing(default: Any) -> bool:
    return default is dataclasses.MISSING or type(default).__name__.startswith("PydanticUndefined")


def _hints(kind: type) -> dict[str, Any]:
    """The annotations that can be evaluated; others name what is imported for type checkers alone."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        names = vars(sys.modules[base.__module__]) if base.__module__ in sys.modules else {}
        for name, hint in vars(base).get("__annotations__", {}).items():
            found[name] = _evaluated(hint, names)
    return found


def _evaluated(hint: Any, names: "dict[str, Any]") -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, dict(names))  # noqa: S307 -- an annotation of the engine's own source
    except Exception:  # noqa: BLE001 -- whatever it is, it cannot be evaluated here
        return Any


def _configuration(hint: Any) -> "type | None":
    """A class of plain fields that has a `__dict__`; None for any other type."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and "__slots__" not in vars(hint):
        return hint
    return None


def _given(kind: type) -> "dict[str, tuple[Any, Any, bool]]":
    """What the constructors of a class, and of those it derives from, give it before it knows anything."""
    found: dict[str, tuple[Any, Any, bool]] = {}
    for base in kind.__mro__:
        constructor = vars(base).get("__init__")
        if not inspect.isfunction(constructor):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(constructor))
        except OSError:
            continue
        names = vars(sys.modules[base.__module__])
        function = ast.parse(source).body[0]
        assert isinstance(function, ast.FunctionDef)
        for name, given in _assigned(function, names).items():
            found.setdefault(name, given)
    return found


def _assigned(function: ast.FunctionDef, names: "dict[str, Any]") -> "dict[str, tuple[Any, Any, bool]]":
    arguments = {
        argument.arg: _evaluated(ast.unparse(argument.annotation), names)
        for argument in (*function.args.args, *function.args.kwonlyargs)
        if argument.annotation is not None
    }
    found: dict[str, tuple[Any, Any, bool]] = {}
    for node in ast.walk(function):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"):
            continue
        hint: Any = Any
        if isinstance(node, ast.AnnAssign):
            hint = _evaluated(ast.unparse(node.annotation), names)
        if isinstance(node.value, ast.Name) and node.value.id in arguments:
            hint = arguments[node.value.id]
            if _configuration(hint) is not None:
                found.setdefault(target.attr, (hint, ABSENT, False))
            continue
        value = _literal(node.value)
        if value is not ABSENT:
            found.setdefault(target.attr, (hint, value, False))
    return found


def _literal(node: ast.expr) -> Any:
    """A constant, or an empty container."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args and not node.keywords:
        return {"dict": {}, "list": [], "set": set()}.get(node.func.id, ABSENT)
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ABSENT


def _allows_none(shape: "dict[str, Any]") -> bool:
    parts = shape["of"] if shape["is"] == "any of" else [shape]
    return any(part["is"] in ("none", "other") for part in parts)


def _fresh(value: Any) -> Any:
    return copy.copy(value) if isinstance(value, (dict, list, set)) else value


def _same(value: Any, before: Any) -> bool:
    return type(value) is type(before) and bool(value == before)


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
