"""Resolve names: of modules, across imports, of classes and their members, of fixtures."""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from staticfire.harness.scan import forms, plugin
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.budget import REASON, TooLarge, spending
from staticfire.harness.scan.machine import Machine
from staticfire.harness.scan.modules import Module, bound_names
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import UNBOUND, Exhausted, Frame, Run, Scope
from staticfire.harness.scan.values import (
    Bound,
    Class,
    External,
    Function,
    Instance,
    Keys,
    Member,
    ModuleValue,
)

_SITES = re.compile(
    r"\b(?:" + "|".join(forms.NAMES) + r")\s*\(|[\"']vllm[\"'],\s*[\"'](?:serve|bench|launch)[\"']|api_server[\"']"
)
_SITE_OPENINGS = (*forms.NAMES, "'vllm'", '"vllm"', "api_server'", 'api_server"')
_ENUMS = frozenset({"Enum", "IntEnum", "StrEnum", "Flag", "IntFlag"})
_MIXED = frozenset({"IntEnum", "IntFlag", "StrEnum", "str", "int", "float"})
"""Bases that make a member of an enumeration a text or a number itself."""
_FIELDS = frozenset({"NamedTuple", "BaseModel", "TypedDict", "Struct"})
_USED = re.compile(r"\b(\w++)\s*+\(|\btarget\s*+=\s*+(?:\w++\.)?(\w++)\b")
_MANY = 32
"""Names from which on a text is gone through once for all of them, not once for each."""
OPEN = "<open>"


class Names(Machine):
    """Resolution of names; the derived classes evaluate."""

    # Modules

    def module_name(self, module: Module, name: str) -> Any:
        """What a top-level name of a module stands for; `UNBOUND` if it has none."""
        if name in module.values:
            return module.values[name]
        indices = module.names.get(name)
        if indices is None:
            return self._unlisted(module, name)
        module.values[name] = Unknown("recursion", name)
        for index in indices:
            if index not in module.ran:
                module.ran.add(index)
                self._module_statement(module, module.tree.body[index])
        value = module.values[name]
        if isinstance(value, Unknown) and value.reason == "recursion" and len(indices) == 0:
            return UNBOUND
        return value

    def _unlisted(self, module: Module, name: str) -> Any:
        if name == "__name__":
            return Unknown("environment", "__name__")
        if name == "__file__":
            return str(module.path)
        for statement in module.stars:
            path = self.sources.find(module.path, statement.level, statement.module or "")
            other = self.sources.load(path) if path is not None else None
            if other is not None and other is not module and name in other.names:
                return self.module_name(other, name)
        return UNBOUND

    def _module_statement(self, module: Module, statement: ast.stmt) -> None:
        frame = Frame(module, module.values, qualified=module.shown)
        saved = self.run
        budget = min(self.config.limits.steps, module.budget.steps)
        self.run = Run(joined=True, steps=budget, muted=1, depth=saved.depth + 1)
        try:
            if self.run.depth > self.config.limits.depth * 3:
                raise Exhausted  # noqa: TRY301 - handled below as any other end of the budget
            with spending(module.budget):
                self.execute([statement], frame)
        except (Exhausted, RecursionError, TooLarge, MemoryError):
            for name in bound_names(statement):
                module.values[name] = Unknown(REASON, name)
        finally:
            module.budget.steps -= budget - max(self.run.steps, 0)
            self.run = saved

    def imported(self, module: Module, level: int, name: str, attribute: str | None) -> Any:
        """What `import name` or `from name import attribute` binds."""
        path = self.sources.find(module.path, level, name)
        if path is None:
            if attribute is not None and (inner := self._submodule(module, level, name, attribute)) is not None:
                return inner
            dotted = name if attribute is None else f"{name}.{attribute}" if name else attribute
            return External(dotted)
        target = self.sources.load(path)
        if target is None:
            return Unknown("import", f"{name}.{attribute}" if attribute else name)
        if attribute is None:
            return ModuleValue(target)
        value = self.module_name(target, attribute)
        if value is UNBOUND:
            inner = self._submodule(module, level, name, attribute)
            return inner if inner is not None else Unknown("import", f"{name}.{attribute}")
        return value

    def _submodule(self, module: Module, level: int, name: str, attribute: str) -> Any:
        path = self.sources.find(module.path, level, f"{name}.{attribute}" if name else attribute)
        target = self.sources.load(path) if path is not None else None
        return ModuleValue(target) if target is not None else None

    # Which names lead to a site

    def reach(self, module: Module) -> frozenset[str]:
        """Names of functions, methods and classes of a module, imported ones included, that lead to a site."""
        key = str(module.path)
        if key in self._reach:
            return self._reach[key]
        if key in self._reaching:
            return frozenset()
        self._reaching.add(key)
        imported = self._imported_reach(module)
        found = imported | self._own_reach(module, imported)
        self._reaching.discard(key)
        self._reach[key] = found
        return found

    def led(self, module: Module) -> list[int]:
        """Lines of a module that lead to a site."""
        names = self.reach(module)
        return sorted({*_site_lines(module), *(_using_lines(module, names) if names else ())})

    def _imported_reach(self, module: Module) -> frozenset[str]:
        found: set[str] = set()
        for node in _imports(module):
            path = self.sources.find(module.path, node.level, node.module or "")
            if path is None or path == module.path:
                continue
            other = self.sources.load(path)
            if other is None or not other.mentions:
                continue
            inner = self.reach(other)
            found.update(alias.asname or alias.name for alias in node.names if alias.name in inner)
        return frozenset(found - set(forms.NAMES))

    @staticmethod
    def _own_reach(module: Module, imported: frozenset[str]) -> frozenset[str]:
        extents: list[tuple[str, int, int]] = []
        for function, owners in module.functions:
            extents.append((function.name, function.lineno, function.end_lineno or function.lineno))
            extents.extend((owner.name, function.lineno, function.end_lineno or 0) for owner in owners)
        found: set[str] = set()
        renamed = set(forms.renamed(module.text))
        found |= renamed | forms.derived(module.text, imported | renamed)
        fresh = {name for name in (*imported, *found) if not name.startswith("__")}
        lines = sorted({*_site_lines(module), *(_using_lines(module, fresh) if fresh else ())})
        while lines:
            new = {
                name
                for name, first, last in extents
                if name not in found and not name.startswith("__") and _any_within(lines, first, last)
            }
            new |= forms.derived(module.text, found | imported | new) - found
            found |= new
            lines = _using_lines(module, new)
        return frozenset(name for name in found if not name.startswith("__"))

    # Classes

    def bases(self, cls: Class) -> list[Any]:
        """The bases of a class, evaluated."""
        return [self.evaluate(base, self._around(cls)) for base in cls.node.bases]

    @staticmethod
    def _around(owner: Class) -> Frame:
        return owner.closure if isinstance(owner.closure, Frame) else Frame(owner.module, {}, qualified=owner.name)

    def lineage(self, cls: Class, depth: int = 0) -> list[Class]:
        """A class and the classes it inherits from that are read, in order of lookup."""
        found = [cls]
        if depth > 8:
            return found
        for base in self.bases(cls):
            if isinstance(base, Class) and base is not cls:
                found.extend(item for item in self.lineage(base, depth + 1) if item not in found)
        return found

    def foreign_base(self, cls: Class) -> str:
        """The last name of the first base that is not read, of the class or those it inherits from."""
        for item in self.lineage(cls):
            for base in self.bases(item):
                if isinstance(base, External):
                    return base.last
        return ""

    def members(self, cls: Class) -> dict[str, Any]:
        """The names that a class's own body binds."""
        if cls.members is None:
            cls.members = {}
            frame = Frame(cls.module, cls.members, self._around(cls), qualified=cls.name)
            saved = self.run
            self.run = Run(joined=True, steps=self.config.limits.steps, muted=1, depth=saved.depth + 1)
            try:
                with spending(cls.module.budget):
                    for statement in cls.node.body:
                        self.execute([statement], frame)
            except (Exhausted, RecursionError, TooLarge):
                pass
            finally:
                cls.module.budget.steps -= self.config.limits.steps - max(self.run.steps, 0)
                self.run = saved
            for name, value in list(cls.members.items()):
                if isinstance(value, Function) and value.owner is None:
                    cls.members[name] = Function(value.node, value.module, cls, None, value.closure, value.name)
        return cls.members

    def class_attribute(self, cls: Class, name: str) -> Any:
        """An attribute looked up on a class."""
        if name == "__name__":
            return cls.name
        for item in self.lineage(cls):
            members = self.members(item)
            if name in members:
                value = members[name]
                if isinstance(value, Function):
                    if decorated(value, "classmethod"):
                        return self.bind(value, cls)
                    return value
                if not name.startswith("_") and not isinstance(value, Function) and self.is_enum(cls):
                    return self._member(cls, name, value)
                return value
        return Unknown("attribute", f"{cls.name}.{name}")

    def _foreign_bases(self, cls: Class) -> frozenset[str]:
        """The last names of every base that is not read, of the class and those it inherits from."""
        if cls.foreign is None:
            bases = (base for item in self.lineage(cls) for base in self.bases(item))
            cls.foreign = frozenset(base.last for base in bases if isinstance(base, External))
        return cls.foreign

    def is_enum(self, cls: Class) -> bool:
        """Whether a class is an enumeration."""
        return not _ENUMS.isdisjoint(self._foreign_bases(cls))

    def _member(self, cls: Class, name: str, value: Any) -> Member:
        bases = self._foreign_bases(cls)
        if isinstance(value, Unknown) and "StrEnum" in bases and value.detail.endswith("auto()"):
            value = name.lower()
        return Member(cls, name, value, not _MIXED.isdisjoint(bases) and isinstance(value, str | int | float))

    def instance_attribute(self, instance: Instance, name: str) -> Any:
        """An attribute looked up on an object."""
        if name in instance.attributes:
            return instance.attributes[name]
        if OPEN in instance.attributes:
            return instance.attributes[OPEN]
        value = self.class_attribute(instance.cls, name)
        if not isinstance(value, Function):
            return value
        if decorated(value, "property") or decorated(value, "cached_property"):
            return self.call_function(self.bind(value, instance), [], Keys())
        if decorated(value, "staticmethod") or value.bound is not None:
            return value
        return self.bind(value, instance)

    @staticmethod
    def bind(function: Function, receiver: Any) -> Function:
        """A function as a method of something."""
        return Function(function.node, function.module, function.owner, receiver, function.closure, function.name)

    def fields(self, cls: Class) -> list[tuple[str, ast.expr | None, Class]] | None:
        """Fields of a dataclass-like class with the expressions of their defaults; None if it is none."""
        lineage = self.lineage(cls)
        marked = any(
            terminal(item.func if isinstance(item, ast.Call) else item) in {"dataclass", "define", "frozen", "config"}
            for owner in lineage
            for item in owner.node.decorator_list
        )
        if not marked and self.foreign_base(cls) not in _FIELDS:
            return None
        found: dict[str, tuple[ast.expr | None, Class]] = {}
        for owner in reversed(lineage):
            shared = "ClassVar" in owner.module.text
            for statement in owner.node.body:
                if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
                    continue
                if not shared or "ClassVar" not in ast.dump(statement.annotation):
                    found[statement.target.id] = (statement.value, owner)
        return [(name, default, owner) for name, (default, owner) in found.items()]

    # Fixtures

    def fixture(self, name: str, scope: Scope, within: Function | None = None) -> Function | None:
        """The fixture that a test in `scope` gets under a name, None if none is in sight.

        Args:
            name: What it is asked for by.
            scope: Where the test stands.
            within: The fixture of that name which asks: it gets the next one further out.
        """
        found = self._fixtures(name, scope)
        if within is not None:
            next((one for one in found if one.node is within.node), None)
        return next(found, None)

    def _fixtures(self, name: str, scope: Scope) -> Iterator[Function]:
        """Every fixture of a name in sight, closest first."""
        for owner in reversed(scope.owners):
            for item in self.lineage(owner):
                member = self.members(item).get(name)
                if isinstance(member, Function) and is_fixture(member):
                    yield member
        outermost = (plugin.ENTRY,) if name in forms.NAMES else ()
        for path in dict.fromkeys((scope.module.path, *self.sources.conftests(scope.module.path), *outermost)):
            module = scope.module if path == scope.module.path else self.sources.load(path)
            if module is not None and (found := self._module_fixture(module, name)) is not None:
                yield found

    def _module_fixture(self, module: Module, name: str) -> Function | None:
        if name not in module.fixtures:
            module.fixtures[name] = self._find_fixture(module, name)
        found: Function | None = module.fixtures[name]
        return found

    def _find_fixture(self, module: Module, name: str) -> Function | None:
        if name in module.names or module.stars:
            value = self.module_name(module, name)
            if isinstance(value, Function) and is_fixture(value):
                return value
        if f'name="{name}"' in module.text:
            for function, owners in module.functions:
                if not owners:
                    value = self.module_name(module, function.name)
                    if isinstance(value, Function) and _fixture_name(value) == name:
                        return value
        return None


def _any_within(lines: list[int], first: int, last: int) -> bool:
    """Whether one of some sorted lines stands after a first one, up to a last one."""
    index = bisect_right(lines, first)
    return index < len(lines) and lines[index] <= last


def _site_lines(module: Module) -> list[int]:
    """Lines on which a site starts, by its text."""
    return module.lines_with(_SITES, _SITE_OPENINGS)


def _using_lines(module: Module, names: Iterable[str]) -> list[int]:
    """Lines on which functions and classes of these names are called, or handed to a process."""
    wanted = sorted(name for name in names if not name.startswith("test"))
    if not wanted:
        return []
    if len(wanted) > _MANY:
        among = frozenset(wanted)
        found = (item for item in _USED.finditer(module.text) if (item[1] or item[2]) in among)
        return sorted({module.line_at(item.start()) for item in found})
    either = "|".join(re.escape(name) for name in wanted)
    pattern = re.compile(rf"\b(?:{either})\s*\(|\btarget\s*=\s*(?:\w+\.)?(?:{either})\b")
    return module.lines_with(pattern, (*wanted, "target"))


def _imports(module: Module) -> list[ast.ImportFrom]:
    found = [statement for statement in module.tree.body if isinstance(statement, ast.ImportFrom)]
    for function, _ in module.functions:
        found.extend(statement for statement in function.body if isinstance(statement, ast.ImportFrom))
    return found


def decorated(function: Function, name: str) -> bool:
    """Whether a decorator of that name stands over a function."""
    return any(
        terminal(item.func if isinstance(item, ast.Call) else item) == name
        for item in getattr(function.node, "decorator_list", ())
    )


def is_fixture(function: Function) -> bool:
    """Whether a function is a pytest fixture."""
    return decorated(function, "fixture")


def fixture_call(function: Function) -> ast.Call | None:
    """The call of `pytest.fixture(...)` over a fixture, None if it has no arguments."""
    for item in getattr(function.node, "decorator_list", ()):
        if isinstance(item, ast.Call) and terminal(item.func) == "fixture":
            return item
    return None


def _fixture_name(function: Function) -> str:
    call = fixture_call(function)
    for keyword in call.keywords if call is not None else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return function.name


__all__ = ["OPEN", "Bound", "Names", "decorated", "fixture_call", "is_fixture"]
