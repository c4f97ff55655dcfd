"""Which function calls which: by types where they are known, by the name of the method where few classes have it."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Final, NamedTuple

from staticfire.harness.sync.source.facts import CALL, Call, Class, Function
from staticfire.harness.sync.source.inference import Code, Inference, Instance, Itself, Outside, Value, is_property
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.shapes import CONSTRUCTORS, REMOTE_CLASSES, SPAWNS, VALIDATORS

COMMON: Final = frozenset(
    name for kind in (list, dict, set, str, bytes, int, tuple, type, object) for name in dir(kind)
) | frozenset({"close", "start", "run", "join", "send", "recv", "read", "write", "put", "wait", "forward", "__call__"})
"""Methods that objects of Python itself have: alone, such a name says nothing about a class of the tree."""
FAMILIES: Final = 4
"""A method whose name more unrelated classes have is not followed without a type."""


class Edge(NamedTuple):
    """One call.

    Attributes:
        target: What is called.
        line: Where.
        typed: Whether the type of the object is known, by its own or because only relatives have such a method.
    """

    target: Function
    line: int
    typed: bool = True


_Reached = tuple[Function, Edge | None, Function | None]
Reach = dict[int, _Reached]
"""By id of a function: itself, the call that leads to it first, and the function with that call."""


class Graph:
    """Calls, found when they are asked for.

    Args:
        program: The tree.
        inference: Types in it.
    """

    def __init__(self, program: Program, inference: Inference) -> None:
        self.program = program
        self.inference = inference
        self._edges: dict[int, tuple[Edge, ...]] = {}
        self._heirs: dict[tuple[str, frozenset[str]], tuple[Function, ...]] = {}
        self._constructors: dict[int, list[Function]] = {}
        self.undecided: dict[str, int] = {}

    def edges(self, function: Function) -> tuple[Edge, ...]:
        """Everything that a function calls, starts as a thread or hands on to be called; not what it spawns."""
        if id(function) not in self._edges:
            found: dict[int, Edge] = {}
            for edge in self._find(function):
                found.setdefault(id(edge.target), edge)
            self._edges[id(function)] = tuple(found.values())
        return self._edges[id(function)]

    def _find(self, function: Function) -> Iterable[Edge]:
        for call in function.calls:
            if is_spawn(call):
                continue
            yield from self._called(call, function)
            handed = [*call.args, *(value for _, value in call.keywords)]
            for argument in handed:
                if argument and not argument.startswith("'"):
                    for value in self.inference.of(argument, function):
                        if isinstance(value, Code) and not is_property(value.function):
                            yield Edge(value.function, call.line)
        yield from self._looked_up(function)

    def _looked_up(self, function: Function) -> Iterable[Edge]:
        """Properties that a function reads or sets."""
        for write in function.writes:
            if write.name in self._set_properties:
                for value in self.inference.of(write.base, function):
                    for part in self.program.line(value.cls) if isinstance(value, Instance) else ():
                        if setter := self.program.setters.get((part.module, part.name, write.name or "")):
                            yield Edge(setter, write.line)
        for chain, lines in function.loads.items():
            base, _, name = chain.rpartition(".")
            if name not in self._properties:
                continue
            for value in self.inference.of(base, function):
                if isinstance(value, Instance) and not value.nested:
                    yield from (
                        Edge(method, lines[0])
                        for method in self.program.methods(value.cls, name)
                        if is_property(method)
                    )

    @cached_property
    def _set_properties(self) -> frozenset[str]:
        return frozenset(name for _, _, name in self.program.setters)

    @cached_property
    def _properties(self) -> frozenset[str]:
        return frozenset(function.name for function in self.program.all_functions if is_property(function))

    def _called(self, call: Call, function: Function) -> Iterable[Edge]:
        values = self.inference.of(call.func, function)
        for value in values:
            for target in self.targets(value):
                yield Edge(target, call.line)
            if isinstance(value, Outside):
                yield from self._made(value, call)
        base, _, name = call.func.rpartition(".")
        if not values and base and name not in COMMON and name in self.program.named:
            if self.inference.of(base, function):
                return  # the type is known and has no such method
            candidates = self.program.named[name]
            if self._outside(base, function):
                return
            families = len(self._families(candidates))
            if families > FAMILIES:
                self.undecided[name] = self.undecided.get(name, 0) + 1
                return
            for candidate in candidates:
                yield Edge(candidate, call.line, typed=families == 1)

    def _made(self, value: Outside, call: Call) -> Iterable[Edge]:
        """The constructors that a call of a class may be, known only by a base from outside: those that take its names.

        A model or a layer is made so, by a loader that has its class from a table of texts.
        """
        names = frozenset(name for name, _ in call.keywords if name)
        key = (value.name, names)
        if key not in self._heirs:
            found: dict[int, Function] = {}
            for cls in self.program.heirs(value.name) if names else ():
                made = self.program.method(cls, "__init__")
                if made is not None and names <= {name for name, _ in made.params}:
                    found |= {id(target): target for target in self.constructors(cls)}
            self._heirs[key] = tuple(found.values())
        for target in self._heirs[key]:
            yield Edge(target, call.line, typed=False)

    def _outside(self, base: str, function: Function) -> bool:
        """Whether an object is a module, or comes from one, that is no part of the tree."""
        first = base.partition(".")[0].partition("(")[0].partition("[")[0]
        module = self.program.module_of(function)
        if (
            first in function.assigns
            or any(first == name for name, _ in function.params)
            or first not in module.imports
        ):
            return False
        origin, _ = module.imports[first]
        return self.program.module(origin) is None

    def _families(self, functions: Iterable[Function]) -> set[int]:
        found = set()
        for function in functions:
            cls = self.program.class_of(function)
            if cls is not None:
                found.add(id(self.program.family(cls)[0]) if self.program.family(cls) else id(cls))
        return found

    def targets(self, value: Value) -> list[Function]:
        """What runs when a value is called."""
        match value:
            case Code(function=function):
                return [function]
            case Itself(cls=cls):
                return self.constructors(cls)
            case Instance(cls=cls, nested=0):
                return self.program.methods(cls, "__call__")
            case _:
                return []

    def constructors(self, cls: Class) -> list[Function]:
        """What runs when an object of a class is made."""
        if id(cls) not in self._constructors:
            self._constructors[id(cls)] = self._find_constructors(cls)
        return self._constructors[id(cls)]

    def _find_constructors(self, cls: Class) -> list[Function]:
        found = [method for name in CONSTRUCTORS if (method := self.program.method(cls, name))]
        for part in self.program.line(cls):
            for name in part.methods:
                found += [
                    method
                    for method in self.program.functions.get((part.module, part.name, name), [])
                    if any(last_name(decorator) in VALIDATORS for decorator in method.decorators)
                ]
        return found

    def reach(
        self,
        roots: Iterable[Function],
        stop: Callable[[Function], bool] | None = None,
        typed: bool = False,
        known: Reach | None = None,
    ) -> Reach:
        """Everything that runs where some functions do.

        Args:
            roots: Where it begins.
            stop: Functions that are not entered.
            typed: Follow only calls of what is known by its type.
            known: An answer with the same `stop` and `typed`: part of this one, and not looked for again.

        Returns:
            By id of the function: itself, the call that leads to it first, and the function with that call.
        """
        found: Reach = dict(known) if known else {}
        pending: list[_Reached] = [
            (root, None, None) for root in roots if id(root) not in found and (stop is None or not stop(root))
        ]
        for entry in pending:
            found.setdefault(id(entry[0]), entry)
        for function, _, _ in pending:  # which grows
            for edge in self.edges(function):
                target = edge.target
                key = id(target)
                if key not in found and (edge.typed or not typed) and (stop is None or not stop(target)):
                    entry = found[key] = (target, edge, function)
                    pending.append(entry)
        return found

    def leading(self, reached: Reach, targets: Iterable[int]) -> set[int]:
        """Of what was reached, ids of the functions from which a call leads to one of some others, and of those.

        Args:
            reached: What is looked at, with everything that it reaches itself.
            targets: Ids of functions.
        """
        callers: dict[int, list[int]] = defaultdict(list)
        for key, (function, _, _) in reached.items():
            for edge in self.edges(function):
                callers[id(edge.target)].append(key)
        found = {key for key in targets if key in reached}
        pending = list(found)
        while pending:
            for key in callers[pending.pop()]:
                if key not in found:
                    found.add(key)
                    pending.append(key)
        return found


def is_spawn(call: Call) -> bool:
    """Whether a call starts a process that runs a function which it names."""
    return spawned(call) is not None


def spawned(call: Call) -> str | None:
    """The chain of the function that a call has run in a process of its own, None where it does not."""
    keyword = SPAWNS.get(last_name(call.func))
    if keyword is None:
        return None
    if len(call.args) > 1 and not call.args[0]:  # Process(None, function)
        return call.args[1]
    return dict(call.keywords).get(keyword)


def is_remote(call: Call) -> bool:
    """Whether a call makes a class whose objects live in processes of their own: `remote(cls)`, `remote(…)(cls)`."""
    return call.func.removesuffix(CALL) in REMOTE_CLASSES


def last_name(chain: str) -> str:
    """The last name of a chain, whether it is called or not."""
    return chain.removesuffix("()").rpartition(".")[2]
