# ruff: noqa: SLF001 -- the table at the end names the handlers of the class above it
"""Calls of pytest, of mocks and of the environment."""

import ast
from collections.abc import Callable, Mapping
from typing import Any, Literal

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Guard, Location, Negative, Unknown
from staticfire.harness.scan.sites import Sites
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import (
    Frame,
    Param,
    Patch,
    Raises,
)
from staticfire.harness.scan.values import (
    Class,
    External,
    Keys,
)

_VARIABLES = 200
"""Variables of the environment that one test sets; each site after it has all of them."""


class Testing(Sites):
    """What a test does to its surroundings."""

    def special(self, name: str, node: ast.Call, frame: Frame) -> Any:
        """A call that is known by its last name alone; `NotImplemented` if it is none."""
        handler = _HANDLERS.get(name)
        return handler(self, node, frame) if handler is not None else NotImplemented

    def _setenv(self, node: ast.Call, frame: Frame) -> Any:
        if len(node.args) < 2:
            return NotImplemented
        key, value = (self.evaluate(arg, frame) for arg in node.args[:2])
        self.set_environment(key, value, frame.module.place(node))
        return None

    def _delenv(self, node: ast.Call, frame: Frame) -> Any:
        if not node.args:
            return NotImplemented
        key = self.evaluate(node.args[0], frame)
        if isinstance(key, str):
            self.run.environment.pop(key, None)
        return None

    def _setattr(self, node: ast.Call, frame: Frame) -> Any:
        if not isinstance(node.func, ast.Attribute):
            return NotImplemented
        if not (node.args and _harmless(node.args[0])):
            self.run.patched.append(frame.module.excerpt(node))
        return None

    def _skip(self, node: ast.Call, frame: Frame) -> Any:
        if not _rooted(node.func, "pytest"):
            return NotImplemented
        # What stands after it is read on: a site that never runs is said to be skipped, not missing.
        self.guard("skip", frame.module.excerpt(node), node, frame, decided=True)
        return None

    def guard(
        self, kind: Literal["skip", "marker"], text: str, node: ast.AST, frame: Frame, *, decided: bool | None = None
    ) -> None:
        """Note a condition under which the test is skipped from here on."""
        found = Guard(kind, text, frame.module.place(node), decided)
        if found not in self.run.guards:
            self.run.guards.append(found)

    def _patch(self, node: ast.Call, frame: Frame) -> Any:
        named = terminal(node.func) == "patch"
        if named or (isinstance(node.func, ast.Attribute) and terminal(node.func.value) == "patch"):
            return Patch(frame.module.excerpt(node))
        return NotImplemented

    def _context(self, node: ast.Call, _frame: Frame) -> Any:
        return Patch("", environment=True) if isinstance(node.func, ast.Attribute) else NotImplemented

    def _fixture(self, node: ast.Call, frame: Frame) -> Any:
        if not node.args:
            return NotImplemented
        wanted = self.evaluate(node.args[0], frame)
        return self.fixture_value(wanted) if isinstance(wanted, str) else Unknown("fixture", "")

    def _param(self, node: ast.Call, frame: Frame) -> Any:
        if not _rooted(node.func, "pytest"):
            return NotImplemented
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                containers.extend(args, self.evaluate(arg.value, frame))
            else:
                args.append(self.evaluate(arg, frame))
        name: str | None = None
        marks: tuple[ast.expr, ...] = ()
        for keyword in node.keywords:
            if keyword.arg == "id":
                given = self.evaluate(keyword.value, frame)
                name = str(given) if isinstance(given, str) else "?"
            elif keyword.arg == "marks":
                value = keyword.value
                marks = tuple(value.elts) if isinstance(value, ast.List | ast.Tuple) else (value,)
        return Param(tuple(args), name, marks, frame)

    def _raises(self, node: ast.Call, frame: Frame) -> Any:
        if not node.args:
            return NotImplemented
        value = self.evaluate(node.args[0], frame)
        kinds = value if isinstance(value, tuple) else (value,)
        names = tuple(
            item.last if isinstance(item, External) else item.name if isinstance(item, Class) else "Exception"
            for item in kinds
        )
        match: str | None = None
        for keyword in node.keywords:
            if keyword.arg == "match":
                pattern = self.evaluate(keyword.value, frame)
                match = str(pattern) if isinstance(pattern, str) else None
        return Raises(Negative(names, match, frame.module.place(node)))

    def _patch_dict(self, node: ast.Call, frame: Frame) -> Any:
        if not (isinstance(node.func, ast.Attribute) and terminal(node.func.value) == "patch"):
            return NotImplemented
        args, keywords = self.arguments(node, frame)
        if args and isinstance(args[0], External) and args[0].name == "os.environ":
            values = args[1] if len(args) > 1 and isinstance(args[1], dict) else Keys()
            for key, value in {**values, **keywords}.items():
                self.set_environment(key, value, frame.module.place(node))
            return Patch("", environment=True)
        return Patch(frame.module.excerpt(node))

    def set_environment(self, key: Any, value: Any, where: Location) -> None:
        """Set a variable of the environment from here on."""
        if isinstance(key, str) and len(self.run.environment) >= _VARIABLES and key not in self.run.environment:
            self.run.patched.append("more variables of the environment than are followed")
        elif isinstance(key, str):
            self.run.environment[str(key)] = value
            self.run.environment.where[str(key)] = where

    def environment_value(self, key: Any, default: Any) -> Any:
        """What `os.environ.get(key, default)` gives: what was set before, else the default, which is then assumed."""
        if not isinstance(key, str):
            return Unknown("environment", "")
        if key in self.run.environment:
            return self.run.environment[key]
        if isinstance(default, Unknown):
            return Unknown("environment", key)
        if not self.run.joined:
            text = f"{key} is not set in the environment"
            if text not in self.run.assumed:
                self.run.assumed.append(text)
            return default
        return Unknown("environment", key, (default,) if default is not None else ())


def _rooted(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name


def _harmless(node: ast.expr) -> bool:
    """Whether what is patched is none of the engine's or the platform's."""
    text = node.value if isinstance(node, ast.Constant) else ""
    while isinstance(node, ast.Attribute):
        node = node.value
    root = node.id if isinstance(node, ast.Name) else str(text).partition(".")[0]
    return root in {"sys", "os", "time", "builtins", "logging", "random"}


_HANDLERS: Mapping[str, Callable[[Testing, ast.Call, Frame], Any]] = {
    "setenv": Testing._setenv,
    "delenv": Testing._delenv,
    "setattr": Testing._setattr,
    "param": Testing._param,
    "raises": Testing._raises,
    "skip": Testing._skip,
    "dict": Testing._patch_dict,
    "patch": Testing._patch,
    "object": Testing._patch,
    "context": Testing._context,
    "getfixturevalue": Testing._fixture,
}
"""Last name of a call -> what it does; `NotImplemented` where it is another of that name."""
