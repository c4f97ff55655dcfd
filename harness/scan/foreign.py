# ruff: noqa: SLF001 -- the table at the end names the handlers of the class above it
"""Calls of functions that are known by name and not read."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from staticfire.harness.scan import containers, forms, kinds, platforms, pure, versions
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.names import OPEN
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.testing import Testing
from staticfire.harness.scan.values import (
    Bound,
    Class,
    External,
    Function,
    Instance,
    Items,
    Keys,
    Made,
    Method,
    Super,
)


class Foreign(Testing):
    """Functions of Python, of libraries and of the engine."""

    def external(self, target: External, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        """Call something that is not read."""
        name = target.name.removeprefix("builtins.")
        found = platforms.call(target, args, self.config)
        if found is NotImplemented:
            found = versions.call(name, args, self.config.versions)
        if found is not NotImplemented:
            return found
        handler = _HANDLERS.get(name)
        value = handler(self, name, args, keywords, node, frame) if handler is not None else NotImplemented
        if value is not NotImplemented:
            return value
        if (process := keywords.get("target")) is not None and isinstance(process, Function | Bound):
            self._later(process, keywords, node, frame)
        if kinds.configuration_class(target):
            return self._configured(target, args, keywords, node, frame)
        value = pure.apply(name, args, keywords, self.config.limits)
        if value is NotImplemented or (isinstance(value, Unknown) and value.reason in {"value", "call", "error"}):
            return Unknown("call", frame.module.excerpt(node))
        return value

    def _configured(self, target: External, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        """A configuration of the engine, or a member of one of its enumerations by the value."""
        members = [
            (name, constant)
            for name, constant in self.config.constants.items()
            if constant.member and name.rpartition(".")[0] == target.last
        ]
        if members:
            wanted = args[0] if len(args) == 1 and not keywords else Unknown("call")
            for name, constant in members:
                if type(wanted) is type(constant.value) and wanted == constant.value:
                    return External(f"{target.name}.{name.rpartition('.')[2]}", constant)
            return Unknown("call", frame.module.excerpt(node))
        if target.last not in forms.NAMES and args and target.last == "ModelConfig":
            keywords.setdefault("model", args[0])
        elif args:
            # Which fields the first arguments are, only the class itself says.
            keywords.rest = keywords.rest or Unknown("positional", frame.module.excerpt(node))
        return Made(target.last, keywords)

    # Handlers by name; what they cannot tell they leave to what follows.

    def _environment(self, _: str, args: list[Any], keywords: Keys, _node: ast.Call, _frame: Frame) -> Any:
        default = args[1] if len(args) > 1 else keywords.get("default")
        return self.environment_value(args[0] if args else None, default)

    def _partial(self, _: str, args: list[Any], keywords: Keys, _node: ast.Call, _frame: Frame) -> Any:
        return Bound(args[0], tuple(args[1:]), keywords) if args else NotImplemented

    def _is(self, _: str, args: list[Any], _keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        if len(args) != 2:
            return NotImplemented
        decided = kinds.is_a(args[0], args[1])
        return Unknown("condition", frame.module.excerpt(node)) if decided is None else decided

    def _replaced(self, name: str, args: list[Any], keywords: Keys, _node: ast.Call, _frame: Frame) -> Any:
        if not args or not isinstance(args[0], Instance):
            return NotImplemented
        attributes = Keys({key: containers.duplicate(value) for key, value in args[0].attributes.items()})
        if name.endswith("asdict"):
            return attributes
        return Instance(args[0].cls, dict(attributes) | keywords)

    def _super(self, _: str, args: list[Any], _keywords: Keys, _node: ast.Call, frame: Frame) -> Any:
        if len(args) == 2 and isinstance(args[0], Class):
            return Super(args[0], args[1])
        scope: Frame | None = frame
        while scope is not None:
            function = scope.function
            if function is not None and function.owner is not None and function.node.args.args:
                return Super(function.owner, scope.names.get(function.node.args.args[0].arg))
            scope = scope.parent
        return Unknown("call", "super()")

    def _type(self, _: str, args: list[Any], *_rest: Any) -> Any:
        return args[0].cls if args and isinstance(args[0], Instance) else NotImplemented

    def _path(self, _: str, args: list[Any], _keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        return args[0] if len(args) == 1 and isinstance(args[0], str) else Unknown("path", frame.module.excerpt(node))

    def _later(self, process: Any, keywords: Keys, node: ast.Call, frame: Frame) -> None:
        args = keywords.get("args", ())
        inner = keywords.get("kwargs")
        if isinstance(args, tuple | list):
            self.apply(process, list(args), Keys(inner) if isinstance(inner, dict) else Keys(), node, frame)

    def _map(self, name: str, args: list[Any], _keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        if len(args) < 2:
            return NotImplemented
        elements = containers.sequence(args[1])
        if elements is None or len(args) > 2 or len(elements) > self.config.limits.iterations or name == "filter":
            return Unknown("call", frame.module.excerpt(node))
        return Items(self.apply(args[0], [element], Keys(), node, frame) for element in elements)

    def _getattr(self, name: str, args: list[Any], _keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        if len(args) < 2 or not isinstance(args[1], str):
            return NotImplemented
        value = self.attribute(args[0], args[1], node, frame)
        missing = isinstance(value, Unknown) or (isinstance(value, Method) and not hasattr(str, args[1]))
        closed = isinstance(args[0], Instance) and OPEN not in args[0].attributes and not isinstance(args[0], Unknown)
        if name == "hasattr":
            return (not missing) if closed else Unknown("call", frame.module.excerpt(node))
        if missing and closed and len(args) > 2:
            return args[2]
        return value


_HANDLERS: Mapping[str, Callable[[Foreign, str, list[Any], Keys, ast.Call, Frame], Any]] = {
    "os.environ.get": Foreign._environment,
    "os.getenv": Foreign._environment,
    "functools.partial": Foreign._partial,
    "isinstance": Foreign._is,
    "getattr": Foreign._getattr,
    "hasattr": Foreign._getattr,
    "dataclasses.replace": Foreign._replaced,
    "dataclasses.asdict": Foreign._replaced,
    "copy.replace": Foreign._replaced,
    "map": Foreign._map,
    "filter": Foreign._map,
    "super": Foreign._super,
    "type": Foreign._type,
    "pathlib.Path": Foreign._path,
    "Path": Foreign._path,
}
"""Dotted name -> what calls it; `NotImplemented` where the arguments are none that it understands."""
