"""What the value of a chain is: of which class of the tree, or which class, function or module of it itself.

Answers are sets of possibilities; the empty set says that nothing is known. Types are followed through annotations,
assignments, constructors and what functions say they return, across files and base classes.
"""

import re
from collections import Counter, defaultdict
from functools import cached_property
from typing import Final, NamedTuple

from staticfire.harness.sync.source.expressions import COPY, INNER, MODULE, TYPE
from staticfire.harness.sync.source.facts import CALL, ITEM, Class, Function, Module
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.shapes import COPIERS, DEEP_COPIERS, LACKING, PROPERTIES, SINGLE_GATHERERS

_DEPTH: Final = 12
"""Steps from one chain to another that explains it."""


class Instance(NamedTuple):
    """An object of a class or, unless it is known exactly, of one that inherits from it; `nested` collections deep."""

    cls: Class
    nested: int = 0
    exact: bool = False


class Itself(NamedTuple):
    """A class as a value, such as what is called to make an object."""

    cls: Class


class Code(NamedTuple):
    """A function or method as a value."""

    function: Function


class Holder(NamedTuple):
    """A module as a value."""

    module: Module


class Outside(NamedTuple):
    """A class from outside the tree, or any that inherits from it, as a value."""

    name: str


Value = Instance | Itself | Code | Holder | Outside
Values = tuple[Value, ...]


_TOKEN = re.compile(r".[^.(\[]*", re.DOTALL)


def tokens(chain: str) -> list[str]:
    """`a.b().c[]` as `a`, `.b`, `()`, `.c`, `[]`."""
    return _TOKEN.findall(chain)


class Inference:
    """Types of chains.

    Args:
        program: The tree.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._known: dict[tuple[int, str], Values] = {}
        self._attributes: dict[tuple[int, str], Values] = {}

    def of(self, chain: str, function: Function, depth: int = 0) -> Values:
        """What a chain in a function may be."""
        key = (id(function), chain)
        if key not in self._known:
            if depth > _DEPTH:
                return ()
            self._known[key] = ()
            self._known[key] = _distinct(self._of(chain, function, depth + 1))
        return self._known[key]

    def _of(self, chain: str, function: Function, depth: int) -> list[Value]:
        parts = tokens(chain)
        if not parts:
            return []
        found = self._name(parts[0], parts[1:2] == [CALL], function, depth)
        rest = parts[2:] if parts[0] == "super" else parts[1:]
        path = parts[0]
        for part in rest:
            stored: list[Value] = []
            if part.startswith("."):
                path += part
                for assigned in function.assigns.get(path, ()) if path.count(".") == 1 else ():
                    stored += self._assigned(assigned, function, depth)
            found = stored or [new for value in found for new in self._step(value, part, depth)]
            if part == ITEM and path.isidentifier():
                found += self._gathered(path, function, depth)
            if not found:
                if part.startswith("."):
                    found = list(self.by_name(part[1:]))
                else:
                    return []
        return found

    def _name(self, name: str, called: bool, function: Function, depth: int) -> list[Value]:
        if name.startswith(MODULE):
            module = self.program.module(name.removeprefix(MODULE).replace("/", "."))
            return [Holder(module)] if module else []
        own = self.program.class_of(function)
        if name == "super" and called and own is not None:
            return [Instance(base, exact=True) for base in self.program.bases(own)]
        me = function.params[0][0] if function.params and "staticmethod" not in function.decorators else ""
        if own is not None and me == name:
            return [Itself(own)] if "classmethod" in function.decorators else [Instance(own)]
        found: list[Value] = []
        for assigned in function.assigns.get(name, ()):
            if assigned != name:
                found += self._assigned(assigned, function, depth)
        if found:
            return found
        for param, types in function.params:
            if param == name:
                found = self.annotated(types, self.program.module_of(function))
                return found or list(self.by_name(name))
        return list(self.top(self.program.module_of(function), name, depth)) or list(self.by_name(name))

    def _gathered(self, name: str, function: Function, depth: int) -> list[Value]:
        """What a function puts into a collection of its own, which an element of it may be."""
        return [
            value
            for call in function.calls
            if call.func.startswith(f"{name}.") and call.func.rpartition(".")[2] in SINGLE_GATHERERS
            for argument in call.args[-1:]
            if argument and not argument.startswith("'") and argument != name
            for value in self.of(argument, function, depth)
        ]

    def _assigned(self, assigned: str, function: Function, depth: int) -> list[Value]:
        if assigned.startswith(":"):
            return self.annotated((assigned[1:],), self.program.module_of(function))
        if assigned.startswith(INNER):
            inner = self.program.inner.get((function.module, int(assigned.removeprefix(INNER))))
            return [Code(inner)] if inner else []
        return list(self.of(assigned.removeprefix(COPY), function, depth))

    def top(self, module: Module, name: str, depth: int = 0) -> Values:
        """What a top-level name of a module is."""
        match self.program.resolve(module, name):
            case Class() as cls:
                return (Itself(cls),)
            case Function() as function:
                return (Code(function),)
            case Module() as found:
                return (Holder(found),)
        for _ in range(_DEPTH):
            if name in module.types:
                return tuple(self.annotated(module.types[name], module))
            if name in module.assigns:
                return self._global(module, name, depth)
            origin, attribute = module.imports.get(name, ("", None))
            source = self.program.module(origin) if origin and attribute else None
            if source is None or attribute is None:
                return ()
            module, name = source, attribute
        return ()

    def _global(self, module: Module, name: str, depth: int) -> Values:
        found: list[Value] = []
        for assigned in module.assigns[name]:
            parts = tokens(assigned)
            if assigned.startswith("arg:") or not parts or parts[0] == name or depth > _DEPTH:
                continue
            values: list[Value] = list(self.top(module, parts[0], depth + 1))
            for part in parts[1:]:
                values = [new for value in values for new in self._step(value, part, depth + 1)]
            found += values
        return _distinct(found)

    def annotated(self, types: tuple[str, ...], module: Module) -> list[Value]:
        """What an annotation says."""
        found: list[Value] = []
        for text in types:
            bare = text.removeprefix(TYPE)
            nested = bare.count(ITEM)
            cls = self.program.dotted(module, bare.replace(ITEM, ""))
            if isinstance(cls, Class):
                found.append(Itself(cls) if text.startswith(TYPE) else Instance(cls, nested))
            elif text.startswith(TYPE) and (name := self.program.outside(module, bare)):
                found.append(Outside(name))
            elif alias := self._alias(module, bare.replace(ITEM, "")):
                found += [value._replace(nested=nested) if isinstance(value, Instance) else value for value in alias]
        return found

    def _alias(self, module: Module, name: str) -> list[Value]:
        """`Name = Class` used as a type."""
        if "." in name or name not in module.assigns:
            return []
        return [Instance(value.cls) for value in self._global(module, name, 0) if isinstance(value, Itself)]

    def _step(self, value: Value, part: str, depth: int) -> list[Value]:  # noqa: PLR0911 - one kind of value, one line
        match value, part:
            case Holder(module=module), _ if part.startswith("."):
                inner = self.program.modules.get(f"{module.name}{part}")
                return list(self.top(module, part[1:], depth)) or ([Holder(inner)] if inner else [])
            case Itself(cls=cls), "()":
                return [Instance(cls)]
            case Itself(cls=cls), _ if part.startswith("."):
                inner_class = self.program.classes.get((cls.module, cls.name + part))
                methods = self.program.methods(cls, part[1:])
                return [Itself(inner_class)] if inner_class else [Code(method) for method in methods]
            case Code(function=function), "()":
                return self._returned(function)
            case Instance(nested=nested), "[]" if nested:
                return [value._replace(nested=nested - 1)]
            case Instance(cls=cls, nested=0, exact=True), _ if part.startswith("."):
                method = self.program.method(cls, part[1:])
                return [Code(method)] if method else list(self.attribute(cls, part[1:], depth))
            case Instance(cls=cls, nested=0), _ if part.startswith("."):
                return list(self.attribute(cls, part[1:], depth))
            case Instance(cls=cls, nested=0), "()":
                return [Code(method) for method in self.program.methods(cls, "__call__")]
            case _:
                return []

    def _returned(self, function: Function) -> list[Value]:
        found = self.annotated(function.returns, self.program.module_of(function))
        own = self.program.class_of(function)
        if not found and own is not None and "Self" in function.returns:
            return [Instance(own)]
        return found

    def attribute(self, cls: Class, name: str, depth: int = 0) -> Values:
        """What an attribute of an instance may be."""
        key = (id(cls), name)
        if key not in self._attributes:
            if depth > _DEPTH:
                return ()
            self._attributes[key] = ()
            self._attributes[key] = _distinct(self._attribute(cls, name, depth + 1))
        return self._attributes[key]

    def _attribute(self, cls: Class, name: str, depth: int) -> list[Value]:
        methods = self.program.methods(cls, name)
        if methods:
            if is_property(methods[0]):
                return [value for method in methods for value in self._returned(method)]
            return [Code(method) for method in methods]
        found: list[Value] = []
        for part in self.program.line(cls):
            for field in part.fields:
                if field.name == name:
                    found += self.annotated(field.types, self.program.modules[part.module])
            for function in self.setters(part).get(name, ()):
                for assigned in function.assigns[f"{function.params[0][0]}.{name}"]:
                    found += self._assigned(assigned, function, depth)
        return found or self._handed_on(cls, name, depth)

    def _handed_on(self, cls: Class, name: str, depth: int) -> list[Value]:
        """What an object takes from one it holds, by `def __getattr__(self, name): return getattr(self.one, name)`."""
        lacking = self.program.method(cls, LACKING) if not name.startswith("_") else None
        if lacking is None or len(lacking.params) < 2:
            return []
        (me, _), (asked, _) = lacking.params[:2]
        holders = [
            call.args[0]
            for call in lacking.calls
            if call.func == "getattr" and call.args[1:2] == (asked,) and call.args[0].startswith(f"{me}.")
        ]
        return [value for holder in holders for value in self.of(f"{holder}.{name}", lacking, depth)]

    def setters(self, cls: Class) -> dict[str, list[Function]]:
        """Attribute of `self` -> the methods of exactly this class that assign to it."""
        return self._setters.get((cls.module, cls.name), {})

    @cached_property
    def _setters(self) -> dict[tuple[str, str], dict[str, list[Function]]]:
        found: dict[tuple[str, str], dict[str, list[Function]]] = {}
        for function in self.program.all_functions:
            if function.owner and function.params:
                me = function.params[0][0] + "."
                own = found.setdefault((function.module, function.owner), defaultdict(list))
                for target in function.assigns:
                    if target.startswith(me):
                        own[target.removeprefix(me)].append(function)
        return found

    def by_name(self, name: str) -> Values:
        """What is always called so: where every annotation of a name says the same class, a bare one means it, too."""
        return self._usual.get(name, ())

    @cached_property
    def _usual(self) -> dict[str, Values]:
        said: dict[str, Counter[Value]] = defaultdict(Counter)
        for module in self.program.modules.values():
            for cls in module.classes:
                for field in cls.fields:
                    for value in self.annotated(field.types, module):
                        said[field.name][value] += 1
            for function in module.functions:
                for param, types in function.params:
                    for value in self.annotated(types, module):
                        said[param][value] += 1
        return {name: self._one(counts) for name, counts in said.items()}

    @staticmethod
    def _one(counts: Counter[Value]) -> Values:
        """The class that a name nearly always stands for."""
        (value, times), total = counts.most_common(1)[0], sum(counts.values())
        return (value,) if times >= 3 and times >= 0.9 * total and isinstance(value, Instance) else ()

    def copy_of(self, func: str) -> bool:
        """Whether a call gives a copy of its first argument, or of the object whose method it is."""
        return func.rpartition(".")[2] in COPIERS

    def makes_anew(self, func: str, rest: str, function: Function) -> bool:
        """Whether what is found behind a call, `func(…)rest`, is an object that nobody else has.

        A shallow copy is new itself; the objects inside are those of the original, unless the call names others.
        """
        if func.rpartition(".")[2] in DEEP_COPIERS:
            return True
        if not self.copy_of(func):
            return any(isinstance(value, Itself) for value in self.of(func, function))
        inner = rest.removeprefix(".").partition(".")[0]
        named = {name for call in function.calls if call.func == func for name, _ in call.keywords}
        return not inner or inner in named


def is_property(function: Function) -> bool:
    """Whether a method looks like an attribute."""
    return any(decorator.rpartition(".")[2] in PROPERTIES for decorator in function.decorators)


def _distinct(values: list[Value]) -> Values:
    if len(values) < 2:
        return tuple(values)
    found: dict[tuple[object, ...], Value] = {}
    for value in values:
        key = (type(value), id(value[0]), *value[1:])
        found.setdefault(key, value)
    return tuple(found.values())
