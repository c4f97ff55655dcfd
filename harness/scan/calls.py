"""Evaluate calls: known functions, functions and classes that are read, and the constructions that are sites."""

import ast
from typing import Any

from staticfire.harness.scan import forms, platforms, pure
from staticfire.harness.scan.base import Location, Negative, Unknown
from staticfire.harness.scan.construction import Constructions
from staticfire.harness.scan.names import OPEN
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import Frame, Param, Patch, Raises, Stopped
from staticfire.harness.scan.values import (
    Bound,
    Class,
    External,
    Function,
    Instance,
    Items,
    Joined,
    Keys,
    Made,
    Method,
    is_known,
)

_PATCHING = frozenset({"patch", "patch.object", "mocker.patch"})


class Calls(Constructions):
    """Evaluation of calls."""

    def call(self, node: ast.Call, frame: Frame) -> Any:
        """The value of a call."""
        name = terminal(node.func)
        if name in forms.NAMES and not _is_method(node.func):
            return self.site(node, forms.NAMES[name], frame)
        special = self._special(name, node, frame)
        if special is not NotImplemented:
            return special
        target = self.evaluate(node.func, frame)
        if isinstance(target, Class) and name in self.reach(frame.module) and self.run.record is None:
            signature = forms.Signature("wrapper")
            return self.site(node, signature, frame, target)
        args, keywords = self.arguments(node, frame)
        return self.apply(target, args, keywords, node, frame)

    def arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Any], Keys]:
        """Positional and keyword arguments of a call, splats merged in, with places."""
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                pure.extend(args, self.evaluate(arg.value, frame))
            else:
                args.append(self.evaluate(arg, frame))
        keywords = Keys()
        for keyword in node.keywords:
            value = self.evaluate(keyword.value, frame)
            if keyword.arg is None:
                pure.merge(keywords, value)
                continue
            keywords[keyword.arg] = value
            place = frame.given.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else None
            keywords.where[keyword.arg] = place or frame.module.place(keyword)
        return args, keywords

    def apply(self, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:  # noqa: PLR0911
        """Call a value."""
        match target:
            case Function():
                return self.call_function(target, args, keywords)
            case Class():
                return self.instantiate(target, args, keywords)
            case Bound():
                merged = Keys(target.keywords)
                pure.merge(merged, keywords)
                return self.apply(target.function, [*target.args, *args], merged, node, frame)
            case Method():
                return self._method(target, args, keywords, frame, node)
            case External():
                return self._external(target, args, keywords, node, frame)
            case Instance():
                inner = self.class_attribute(target.cls, "__call__")
                if isinstance(inner, Function):
                    return self.call_function(self.bind(inner, target), args, keywords)
                return Unknown("call", frame.module.excerpt(node))
            case Unknown() if target.reason in {"environment", "platform"}:
                return Unknown(target.reason, frame.module.excerpt(node))
            case _:
                return Unknown("call", frame.module.excerpt(node))

    def _method(self, method: Method, args: list[Any], keywords: Keys, frame: Frame, node: ast.Call) -> Any:
        receiver = method.receiver
        if isinstance(receiver, Keys) and method.name in {"setdefault", "update"}:
            for key in [args[0]] if method.name == "setdefault" and args and pure.hashable(args[0]) else []:
                if key not in receiver:
                    receiver.where[key] = frame.module.place(node)
        value = pure.method(receiver, method.name, args, keywords, self.config.limits)
        if isinstance(value, Unknown) and value.reason == "call":
            return Unknown("call", frame.module.excerpt(node))
        return value

    def _external(self, target: External, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:  # noqa: C901, PLR0911, PLR0912
        name = target.name.removeprefix("builtins.")
        found = platforms.call(target, args, self.config)
        if found is not NotImplemented:
            return found
        if name in {"os.environ.get", "os.getenv"}:
            default = args[1] if len(args) > 1 else keywords.get("default")
            return self.environment_value(args[0] if args else None, default)
        if name == "functools.partial" and args:
            return Bound(args[0], tuple(args[1:]), keywords)
        if name == "isinstance" and len(args) == 2:
            return self._isinstance(args[0], args[1], frame.module.excerpt(node))
        if name in {"getattr", "hasattr"} and len(args) >= 2 and isinstance(args[1], str):
            return self._getattr(name, args, node, frame)
        if (
            name in {"dataclasses.replace", "dataclasses.asdict", "copy.replace"}
            and args
            and isinstance(args[0], Instance)
        ):
            attributes = Keys({key: pure.duplicate(value) for key, value in args[0].attributes.items()})
            if name.endswith("asdict"):
                return attributes
            return Instance(args[0].cls, dict(attributes) | keywords)
        if name in {"map", "filter"} and len(args) >= 2:
            return self._map(name, args, node, frame)
        if name == "super":
            return Unknown("call", "super()")
        if name == "type" and args and isinstance(args[0], Instance):
            return args[0].cls
        if (process := keywords.get("target")) is not None and isinstance(process, Function | Bound):
            self._later(process, keywords, node, frame)
        if name in {"pathlib.Path", "Path"}:
            return (
                args[0] if len(args) == 1 and isinstance(args[0], str) else Unknown("path", frame.module.excerpt(node))
            )
        if configuration_class(target):
            if target.last not in forms.NAMES and args and target.last == "ModelConfig":
                keywords.setdefault("model", args[0])
            return Made(target.last, keywords)
        value = pure.apply(name, args, keywords, self.config.limits)
        if value is NotImplemented or (isinstance(value, Unknown) and value.reason in {"value", "call", "error"}):
            return Unknown("call", frame.module.excerpt(node))
        return value

    def _later(self, process: Any, keywords: Keys, node: ast.Call, frame: Frame) -> None:
        args = keywords.get("args", ())
        inner = keywords.get("kwargs")
        if isinstance(args, tuple | list):
            self.apply(process, list(args), Keys(inner) if isinstance(inner, dict) else Keys(), node, frame)

    def _map(self, name: str, args: list[Any], node: ast.Call, frame: Frame) -> Any:
        elements = pure.sequence(args[1])
        if elements is None or len(args) > 2 or len(elements) > self.config.limits.iterations or name == "filter":
            return Unknown("call", frame.module.excerpt(node))
        return Items(self.apply(args[0], [element], Keys(), node, frame) for element in elements)

    def _getattr(self, name: str, args: list[Any], node: ast.Call, frame: Frame) -> Any:
        value = self.attribute(args[0], args[1], node, frame)
        missing = isinstance(value, Unknown) or (isinstance(value, Method) and not hasattr(str, args[1]))
        closed = isinstance(args[0], Instance) and OPEN not in args[0].attributes and not isinstance(args[0], Unknown)
        if name == "hasattr":
            return (not missing) if closed else Unknown("call", frame.module.excerpt(node))
        if missing and closed and len(args) > 2:
            return args[2]
        return value

    def attribute(self, base: Any, name: str, node: ast.expr, frame: Frame) -> Any:
        """An attribute of a value."""
        raise NotImplementedError

    @staticmethod
    def _isinstance(value: Any, kinds: Any, text: str) -> Any:
        types = {f"builtins.{kind.__name__}": kind for kind in (str, int, float, bool, list, dict, tuple, set)}
        wanted = kinds if isinstance(kinds, tuple) else (kinds,)
        if is_known(value) and all(isinstance(kind, External | Class) for kind in wanted):
            return any(
                isinstance(value, types[kind.name])
                for kind in wanted
                if isinstance(kind, External) and kind.name in types
            )
        if isinstance(value, Instance) and all(isinstance(kind, External) and kind.name in types for kind in wanted):
            return False
        if isinstance(value, Joined) and wanted == (External("builtins.str"),):
            return True
        if isinstance(value, Instance) and value.cls in wanted:
            return True
        return Unknown("condition", text)

    # pytest, environment, patches

    def _special(self, name: str, node: ast.Call, frame: Frame) -> Any:  # noqa: C901, PLR0911
        match name:
            case "setenv" if len(node.args) >= 2:
                key, value = (self.evaluate(arg, frame) for arg in node.args[:2])
                self.set_environment(key, value, frame.module.place(node))
                return None
            case "delenv" if node.args:
                key = self.evaluate(node.args[0], frame)
                if isinstance(key, str):
                    self.run.environment.pop(key, None)
                return None
            case "setattr" if isinstance(node.func, ast.Attribute):
                if not (node.args and _harmless(node.args[0])):
                    self.run.patched.append(frame.module.excerpt(node))
                return None
            case "param" if _rooted(node.func, "pytest"):
                return self._param(node, frame)
            case "raises" if node.args:
                return self._raises(node, frame)
            case "skip" if _rooted(node.func, "pytest"):
                raise Stopped
            case "dict" if isinstance(node.func, ast.Attribute) and terminal(node.func.value) == "patch":
                return self._patch_dict(node, frame)
            case "patch" | "object" if name == "patch" or (
                isinstance(node.func, ast.Attribute) and terminal(node.func.value) == "patch"
            ):
                return Patch(frame.module.excerpt(node))
            case "context" if isinstance(node.func, ast.Attribute):
                return Patch("", environment=True)
            case "getfixturevalue" if node.args:
                wanted = self.evaluate(node.args[0], frame)
                return self.fixture_value(wanted) if isinstance(wanted, str) else Unknown("fixture", "")
            case _:
                return NotImplemented

    def _param(self, node: ast.Call, frame: Frame) -> Param:
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                pure.extend(args, self.evaluate(arg.value, frame))
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

    def fixture_value(self, name: str) -> Any:
        """The value of a fixture for the test in progress."""
        raise NotImplementedError

    def _raises(self, node: ast.Call, frame: Frame) -> Raises:
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

    def _patch_dict(self, node: ast.Call, frame: Frame) -> Patch:
        args, keywords = self.arguments(node, frame)
        if args and isinstance(args[0], External) and args[0].name == "os.environ":
            values = args[1] if len(args) > 1 and isinstance(args[1], dict) else Keys()
            for key, value in {**values, **keywords}.items():
                self.set_environment(key, value, frame.module.place(node))
            return Patch("", environment=True)
        return Patch(frame.module.excerpt(node))

    def set_environment(self, key: Any, value: Any, where: Location) -> None:
        """Set a variable of the environment from here on."""
        if isinstance(key, str):
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


def configuration_class(target: External) -> bool:
    """Whether a foreign name is one of the engine's configuration classes."""
    last = target.last
    return target.name.partition(".")[0] in forms.ENGINE_PACKAGES and last[:1].isupper() and not last.isupper()


def _is_method(node: ast.expr) -> bool:
    """Whether a call's target is a method of an object rather than a name of a module."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def _rooted(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name


def _harmless(node: ast.expr) -> bool:
    """Whether what is patched is none of the engine's or the platform's."""
    text = node.value if isinstance(node, ast.Constant) else ""
    while isinstance(node, ast.Attribute):
        node = node.value
    root = node.id if isinstance(node, ast.Name) else str(text).partition(".")[0]
    return root in {"sys", "os", "time", "builtins", "logging", "random"}
