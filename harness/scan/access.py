# ruff: noqa: SLF001 -- the table at the end names the handlers of the class above it
"""What names, attributes and subscripts stand for."""

import ast
import builtins
from collections.abc import Callable, Mapping
from typing import Any

from staticfire.harness.scan import containers, forms, operators, platforms, plugin, versions
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.calls import Calls
from staticfire.harness.scan.names import decorated
from staticfire.harness.scan.slices import BUILDS
from staticfire.harness.scan.state import UNBOUND, Frame, Param
from staticfire.harness.scan.values import (
    Capability,
    Class,
    External,
    Function,
    Inherited,
    Instance,
    Items,
    Keys,
    Made,
    Member,
    Method,
    ModuleValue,
    Rest,
    Super,
    deeply_known,
    is_known,
)

BUILTINS = frozenset(dir(builtins))


class Access(Calls):
    """Names, attributes, subscripts; ways that reading cannot decide between."""

    def choose(self, ways: int, describe: Callable[[int], str]) -> int:
        """Take one of several ways that reading cannot decide between; the others are followed in other runs."""
        run = self.run
        index = len(run.taken)
        way = run.prefix[index] if index < len(run.prefix) else 0
        if index < 40:
            run.taken.append((ways, way))
        run.assumed.append(describe(way))
        return way

    def pick(self, value: Any, key: tuple[str, str]) -> Any:
        """One candidate of an unknown value that has candidates; the same one all through a run."""
        if not isinstance(value, Unknown) or not value.candidates or self.run.joined:
            return value
        picks = self.run.picks.setdefault(key, [])  # one name can stand for several: a parameter, call by call
        for other, taken in picks:
            if containers.same(other, value):
                return taken
        way = self.choose(len(value.candidates), lambda way: f"{key[1]} is {_shown(value.candidates[way])}")
        picks.append((value, value.candidates[way]))
        return value.candidates[way]

    def condition(self, node: ast.expr, frame: Frame) -> bool | None:
        """Whether a condition holds; None where reading cannot tell."""
        return operators.truth(self.evaluate(node, frame))

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        return self.lookup(node.id, frame)

    def lookup(self, name: str, frame: Frame) -> Any:
        """What a name stands for in a frame."""
        scope: Frame | None = frame
        while scope is not None:
            if name in scope.names:
                value = scope.names[name]
                if isinstance(value, Unknown) and value.candidates:
                    return self.pick(value, (scope.qualified, name))
                return value
            scope = scope.parent
        value = self.module_name(frame.module, name)
        if value is UNBOUND:
            return External(f"builtins.{name}") if name in BUILTINS else Unknown("name", name)
        return self._own(value, (frame.module.shown, name))

    def _own(self, value: Any, key: tuple[str, str]) -> Any:
        """A module's value as this run may change it."""
        value = self.pick(value, key)
        if self.run.joined or not isinstance(value, list | dict | Instance | Made):
            return value
        kept = (key[0], f"={key[1]}")
        if kept not in self.run.picks:
            if key not in self._small:
                self._small[key] = containers.weight(value, 3_000) < 3_000
            self.run.picks[kept] = containers.duplicate(value) if self._small[key] else value
        return self.run.picks[kept]

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Any:
        base = self.evaluate(node.value, frame)
        return self.attribute(base, node.attr, node, frame)

    def attribute(self, base: Any, name: str, node: ast.expr, frame: Frame) -> Any:
        """An attribute of a value."""
        handler = _ATTRIBUTES.get(type(base))
        if handler is not None:
            value = handler(self, base, name, node, frame)
            if value is not NotImplemented:
                return value
        if not is_known(base):
            return Unknown("attribute", frame.module.excerpt(node))
        if isinstance(base, tuple) and hasattr(base, "_fields") and name in base._fields:
            return getattr(base, name)
        return Method(base, name)

    def _of_external(self, base: External, name: str, *_: Any) -> Any:
        dotted = f"{base.name}.{name}"
        found = platforms.attribute(dotted, self.config)
        if found is NotImplemented:
            found = versions.installed(dotted, self.config.versions)
        if found is not NotImplemented:
            return found
        if base.constant is not None and base.constant.member:
            return self._of_foreign_member(base, name)
        if base.last == "envs" or dotted.startswith("os.environ."):
            return External(dotted) if base.last == "environ" else Unknown("environment", dotted)
        path = plugin.module(dotted)
        if path is not None and (read := self.sources.load(path)) is not None:
            return ModuleValue(read)
        return self._foreign_constant(base, name)

    def _foreign_constant(self, base: External, name: str) -> External:
        """A name of a class of the engine, with what it stands for."""
        own = base.name.partition(".")[0] in forms.ENGINE_PACKAGES
        return External(f"{base.name}.{name}", self.config.constants.get(f"{base.last}.{name}") if own else None)

    @staticmethod
    def _of_foreign_member(base: External, name: str) -> Any:
        value = base.last if name == "name" else base.constant.value if name == "value" and base.constant else None
        return Unknown("attribute", f"{base.name}.{name}") if value is None else value

    def _of_module(self, base: ModuleValue, name: str, *_: Any) -> Any:
        value = self.module_name(base.module, name)
        return Unknown("attribute", name) if value is UNBOUND else value

    def _of_instance(self, base: Instance, name: str, *_: Any) -> Any:
        return self.instance_attribute(base, name)

    def _of_class(self, base: Class, name: str, *_: Any) -> Any:
        return self.class_attribute(base, name)

    def _of_member(self, base: Member, name: str, *_: Any) -> Any:
        if name in {"value", "name"}:
            return base.value if name == "value" else base.name
        member = self.class_attribute(base.cls, name)
        if isinstance(member, Unknown) and base.mixed:
            return Method(base.value, name)
        return self.bind(member, base) if isinstance(member, Function) else member

    def _of_made(self, base: Made, name: str, *_: Any) -> Any:
        if name in base.keywords:
            return base.keywords[name]
        return Method(base, name) if name in BUILDS else Unknown("object", f"{base.name}.{name}")

    def _of_unknown(self, base: Unknown, name: str, node: ast.expr, frame: Frame) -> Any:
        if base.candidates:
            return Unknown(base.reason, f"{base.detail}.{name}")
        return Unknown(base.reason, base.detail or frame.module.excerpt(node))

    def _of_version(self, base: versions.Version, name: str, *_: Any) -> Any:
        found = base.attribute(name)
        return Unknown("attribute", name) if found is NotImplemented else found

    def _of_param(self, base: Param, name: str, *_: Any) -> Any:
        return base.values if name == "values" else base.id if name == "id" else Unknown("attribute", name)

    def _of_super(self, base: Super, name: str, *_: Any) -> Any:
        receiver = base.receiver
        cls = receiver.cls if isinstance(receiver, Instance) else receiver
        lineage = self.lineage(cls) if isinstance(cls, Class) else []
        for owner in lineage[lineage.index(base.cls) + 1 :] if base.cls in lineage else ():
            value = self.members(owner).get(name)
            if isinstance(value, Function):
                return value if decorated(value, "staticmethod") else self.bind(value, receiver)
            if name == "__init__" and self.fields(owner) is not None:
                return Inherited("", receiver)
            if value is not None:
                return value
        foreign = self.foreign_base(cls) if isinstance(cls, Class) else ""
        return Inherited(foreign, receiver) if name == "__init__" else Unknown("attribute", f"super().{name}")

    def _of_capability(self, base: Capability, name: str, *_: Any) -> Any:
        return getattr(base, name) if name in {"major", "minor"} else NotImplemented

    def _of_function(self, base: Function, name: str, *_: Any) -> Any:
        return base.name if name == "__name__" else Unknown("attribute", name)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        base = self.evaluate(node.value, frame)
        if isinstance(base, External):
            if base.name == "os.environ":
                return self.environment_value(self.evaluate(node.slice, frame), Unknown("environment", "os.environ"))
            key = self.evaluate(node.slice, frame) if isinstance(node.slice, ast.Name | ast.Constant) else None
            member = self._foreign_constant(base, key) if isinstance(key, str) else None
            return member if member is not None and member.constant else base  # a generic alias such as `list[str]`
        if isinstance(base, Class):
            key = self.evaluate(node.slice, frame)
            member = self.class_attribute(base, key) if isinstance(key, str) else None
            return member if isinstance(member, Member) else base
        if isinstance(node.slice, ast.Slice):
            return self._slice(base, node.slice, frame)
        key = self.evaluate(node.slice, frame)
        if isinstance(base, Made):
            return Unknown("object", base.name)
        if isinstance(base, Unknown):
            return Unknown(base.reason, base.detail)
        return self._element(base, key, node, frame)

    def _element(self, base: Any, key: Any, node: ast.Subscript, frame: Frame) -> Any:
        if isinstance(key, Unknown) or not containers.hashable(key):
            candidates: tuple[Any, ...] = ()
            if isinstance(base, dict) and 0 < len(base) <= 8 and not (isinstance(base, Keys) and base.rest):
                candidates = tuple(base.values())
            return Unknown(getattr(key, "reason", "subscript"), frame.module.excerpt(node), candidates)
        if isinstance(base, list | tuple) and isinstance(key, int):
            containers.charge(key if 0 <= key < len(base) else min(abs(key), len(base)))
            reach = base[:key] if key >= 0 else base[key:]
            if any(isinstance(item, Rest) for item in reach):
                return Unknown("value", frame.module.excerpt(node))
        try:
            found = base[key]
        except (KeyError, IndexError, TypeError):
            return Unknown("subscript", frame.module.excerpt(node))
        return found.why if isinstance(found, Rest) else found

    def _slice(self, base: Any, part: ast.Slice, frame: Frame) -> Any:
        bounds = [
            self.evaluate(item, frame) if item is not None else None for item in (part.lower, part.upper, part.step)
        ]
        if not all(bound is None or isinstance(bound, int) for bound in bounds):
            return Unknown("subscript", "slice")
        if isinstance(base, list | tuple | str | bytes):
            containers.charge(len(base))
        if isinstance(base, list | tuple) and any(isinstance(item, Rest) for item in base):
            return Unknown("value", "slice")
        if isinstance(base, list | tuple | str | range | bytes):
            try:
                cut = base[slice(*bounds)]
            except (ValueError, TypeError):
                return Unknown("subscript", "slice")
            return Items(cut, None) if isinstance(base, list) else cut
        return base if isinstance(base, Unknown) else Unknown("subscript", "slice")


def _shown(value: Any) -> str:
    """A candidate in a few words that are the same in every run."""
    if isinstance(value, Class | Function | Made):
        return value.name
    if isinstance(value, Instance):
        return f"{value.cls.name}(...)"
    if isinstance(value, Unknown):
        return f"unknown ({value.detail or value.reason:.50})"
    if isinstance(value, External):
        return f"{value.name:.60}"
    if isinstance(value, ModuleValue):
        return value.module.path.stem
    if deeply_known(value):
        return f"{value!r:.60}"
    return type(value).__name__


_ATTRIBUTES: Mapping[type, Callable[[Access, Any, str, ast.expr, Frame], Any]] = {
    External: Access._of_external,
    ModuleValue: Access._of_module,
    Instance: Access._of_instance,
    Class: Access._of_class,
    Member: Access._of_member,
    Made: Access._of_made,
    Unknown: Access._of_unknown,
    Capability: Access._of_capability,
    Function: Access._of_function,
    Super: Access._of_super,
    Param: Access._of_param,
    versions.Version: Access._of_version,
}
"""Kind of value -> where its attributes come from; `NotImplemented` if not from there."""
