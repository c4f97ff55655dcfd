"""The modules of a tree together: what a name means where it stands, and which classes inherit from which."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from staticfire.harness.sync.source.facts import Class, Function, Module

Found = Class | Function | Module
"""What a name can mean that is part of the tree."""

_DEPTH: Final = 8
"""Names that lead from one module to the next; more are a circle."""


class Program:
    """Everything that a tree defines.

    Args:
        modules: What is kept of each file.
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = {module.name: module for module in modules}
        self.tops = {name.partition(".")[0] for name in self.modules}
        self.alias = self._alias()
        self.classes: dict[tuple[str, str], Class] = {}
        self.functions: dict[tuple[str, str, str], list[Function]] = defaultdict(list)
        self.named: dict[str, list[Function]] = defaultdict(list)
        self.inner: dict[tuple[str, int], Function] = {}
        self.setters: dict[tuple[str, str, str], Function] = {}
        for module in modules:
            for found in module.classes:
                self.classes.setdefault((module.name, found.name), found)
            for function in module.functions:
                if function.inner:
                    self.inner[module.name, function.line] = function
                    continue
                key = (module.name, function.owner, function.name)
                if any(decorator.endswith(".setter") for decorator in function.decorators):
                    self.setters[key] = function
                    continue
                self.functions[key].append(function)
                if function.owner:
                    self.named[function.name].append(function)
        self._bases: dict[int, list[Class]] = {}
        self._lines: dict[int, tuple[Class, ...]] = {}
        self._fitting: dict[int, tuple[Class, ...]] = {}
        self._resolved: dict[tuple[str, str], Found | None] = {}

    @property
    def all_functions(self) -> Iterator[Function]:
        """Every function and method."""
        for module in self.modules.values():
            yield from module.functions

    def module(self, dotted: str) -> Module | None:
        """A module by the name that an import gives it, which may begin above the tree."""
        if dotted.startswith("."):
            return self.modules.get(dotted[1:])
        found = self.modules.get(dotted)
        if found is not None:
            return found
        parts = dotted.split(".")
        if parts[0] == self.alias:
            return self.modules.get(".".join([*self.tops, *parts[1:]]))
        for index in range(1, len(parts)):
            if parts[index] in self.tops:
                return self.modules.get(".".join(parts[index:]))
        return None

    def _alias(self) -> str | None:
        """What the one package of a tree calls itself, where its folder has another name, as that of a copy may."""
        imported = {origin for module in self.modules.values() for origin, _ in module.imports.values()}
        if len(self.tops) != 1:
            return None
        (top,) = self.tops
        said, known = Counter[str](), Counter[str]()
        for origin in imported:
            first, dot, rest = origin.partition(".")
            said[first or top] += bool(dot)
            known[first or top] += bool(dot) and (f"{top}.{rest}" if first else rest) in self.modules
        best, times = max(known.items(), key=lambda item: (item[1], item[0] == top, item[0]), default=(top, 0))
        return best if best != top and times * 2 > said[best] else None

    def resolve(self, module: Module, name: str, depth: int = 0) -> Found | None:
        """What a top-level name of a module means; None where that is no part of the tree."""
        key = (module.name, name)
        if key in self._resolved:
            return self._resolved[key]
        self._resolved[key] = None  # a circle of imports ends here
        found = self._resolve(module, name, depth)
        self._resolved[key] = found
        return found

    def _resolve(self, module: Module, name: str, depth: int) -> Found | None:
        if (module.name, name) in self.classes:
            return self.classes[module.name, name]
        if functions := self.functions.get((module.name, "", name)):
            return functions[-1]
        if depth > _DEPTH:
            return None
        if name in module.imports:
            origin, attribute = module.imports[name]
            if attribute is None:
                return self.module(origin)
            return self._member(origin, attribute, depth)
        if module.package and (inner := self.modules.get(f"{module.name}.{name}")):
            return inner
        for origin in module.stars:
            source = self.module(origin)
            if source is not None and (found := self.resolve(source, name, depth + 1)):
                return found
        return None

    def _member(self, origin: str, attribute: str, depth: int) -> Found | None:
        source = self.module(origin)
        if source is not None and (found := self.resolve(source, attribute, depth + 1)):
            return found
        return self.module(f"{origin}.{attribute}")

    def dotted(self, module: Module, name: str) -> Found | None:
        """What `a.b.C` means in a module."""
        first, *rest = name.split(".")
        found = self.resolve(module, first)
        for part in rest:
            match found:
                case Module():
                    found = self.resolve(found, part) or self.modules.get(f"{found.name}.{part}")
                case Class():
                    found = self.classes.get((found.module, f"{found.name}.{part}")) or self.method(found, part)
                case _:
                    return None
        return found

    def outside(self, module: Module, name: str) -> str | None:
        """The full name of something that a module has from outside the tree; None where it is nothing of the kind."""
        first, _, rest = name.partition(".")
        if first not in module.imports or self.resolve(module, first) is not None:
            return None
        origin, attribute = module.imports[first]
        if origin.startswith(".") or self.module(origin) is not None:
            return None
        return ".".join(part for part in (origin, attribute, rest) if part)

    @cached_property
    def _heirs(self) -> dict[str, list[Class]]:
        found: dict[str, list[Class]] = defaultdict(list)
        for cls in self.classes.values():
            names = {
                name
                for part in self.line(cls)
                for base in part.bases
                if base and (name := self.outside(self.modules[part.module], base.replace("[]", "")))
            }
            for name in names:
                found[name].append(cls)
        return found

    def heirs(self, name: str) -> list[Class]:
        """Classes of the tree that inherit from one outside, by its full name."""
        return self._heirs.get(name, [])

    def text(self, text: str) -> Found | None:
        """What a text such as `package.module:function` or `package.module.Class` names."""
        origin, colon, name = text.partition(":")
        if not colon:
            origin, _, name = text.rpartition(".")
        module = self.module(origin)
        return self.dotted(module, name) if module is not None and name else None

    def module_of(self, found: Class | Function) -> Module:
        """Where something is defined."""
        return self.modules[found.module]

    def class_of(self, function: Function) -> Class | None:
        """The class of a method."""
        return self.classes.get((function.module, function.owner)) if function.owner else None

    def bases(self, cls: Class) -> list[Class]:
        """The classes of the tree that a class names as its bases."""
        if id(cls) not in self._bases:
            module = self.modules[cls.module]
            found = [self.dotted(module, base.replace("[]", "")) for base in cls.bases if base]
            self._bases[id(cls)] = [base for base in found if isinstance(base, Class) and base is not cls]
        return self._bases[id(cls)]

    def line(self, cls: Class) -> tuple[Class, ...]:
        """A class and everything it inherits from, nearest first."""
        if id(cls) not in self._lines:
            self._lines[id(cls)] = (cls,)
            found = [cls]
            for base in self.bases(cls):
                found += [other for other in self.line(base) if other not in found]
            self._lines[id(cls)] = tuple(found)
        return self._lines[id(cls)]

    @cached_property
    def _children(self) -> dict[tuple[str, str], list[Class]]:
        found: dict[tuple[str, str], list[Class]] = defaultdict(list)
        for cls in self.classes.values():
            for base in self.bases(cls):
                found[base.module, base.name].append(cls)
        return found

    def descendants(self, cls: Class) -> list[Class]:
        """Every class that inherits from a class, itself first."""
        found, pending = [cls], [cls]
        while pending:
            for child in self._children.get((pending[-1].module, pending.pop().name), ()):
                if child not in found:
                    found.append(child)
                    pending.append(child)
        return found

    def method(self, cls: Class, name: str) -> Function | None:
        """The method that an instance of exactly this class has."""
        for part in self.line(cls):
            if functions := self.functions.get((part.module, part.name, name)):
                return functions[-1]
        return None

    def methods(self, cls: Class, name: str) -> list[Function]:
        """The methods that an instance of a class, or of one that inherits from it, may have under a name."""
        own = self.method(cls, name)
        found = [own] if own else []
        for child in (*self.descendants(cls)[1:], *self.fitting(cls)):
            found += self.functions.get((child.module, child.name, name), [])[-1:]
        return found

    def fitting(self, cls: Class) -> tuple[Class, ...]:
        """Classes that have every method of a protocol, and so are of it without saying so."""
        if id(cls) not in self._fitting:
            found: tuple[Class, ...] = ()
            says = any(base.removesuffix("[]").rpartition(".")[2] == "Protocol" for base in cls.bases)
            named = [name for name in cls.methods if not name.startswith("__")]  # everything can be called or compared
            if says and named:
                first, *others = named
                found = tuple(
                    owner
                    for method in self.named.get(first, ())
                    if (owner := self.class_of(method)) and owner is not cls and {*others} <= {*owner.methods}
                )
            self._fitting[id(cls)] = found
        return self._fitting[id(cls)]

    def family(self, cls: Class) -> tuple[Class, ...]:
        """The outermost classes that a class inherits from."""
        return tuple(part for part in self.line(cls) if not self.bases(part))

    def fields(self, cls: Class) -> dict[str, tuple[Class, str, tuple[str, ...], int]]:
        """Annotated names of a class, inherited ones too: name -> class, name, types and line."""
        found = {}
        for part in reversed(self.line(cls)):
            for field in part.fields:
                found[field.name] = (part, field.name, field.types, field.line)
        return found


def classes_in(found: Iterable[Found | None]) -> list[Class]:
    """Those that are classes."""
    return [item for item in found if isinstance(item, Class)]
