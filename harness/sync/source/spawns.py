"""Where a tree starts processes, and what runs in them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import NamedTuple

from staticfire.harness.sync.source.facts import CALL, Class, Function, Module
from staticfire.harness.sync.source.graph import Graph, is_remote, is_spawn, last_name, spawned
from staticfire.harness.sync.source.inference import Code, Itself
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.shapes import REMOTE_CLASSES, REMOTE_METHOD, RUN_METHOD, SPAWNS


class Spawn(NamedTuple):
    """One place where processes are started.

    Attributes:
        site: The function that starts them.
        targets: What runs in them on its own or by calls from outside.
        first: What of that runs first.
        line: Where the first of them is started.
    """

    site: Function
    targets: tuple[Function, ...]
    first: tuple[Function, ...]
    line: int


def spawns(program: Program, graph: Graph) -> list[Spawn]:
    """Every place where a process is started with code of the tree."""
    found = []
    runs = {cls: method for cls in program.classes.values() if (method := _run(cls, program))}
    names = {cls.name for cls in runs}
    for function in program.all_functions:
        begun = {
            runs[value.cls]: call.line
            for call in function.calls
            if last_name(call.func) in names
            for value in graph.inference.of(call.func, function)
            if isinstance(value, Itself) and value.cls in runs
        }
        first = dict.fromkeys((*_first(function, program, graph), *begun))
        made = dict(_remote(function, graph))
        targets = first | dict.fromkeys(method for cls in made for method in _everything(cls, program, graph))
        first |= dict.fromkeys(method for cls in made for method in graph.constructors(cls))
        if targets:
            lines = [*made.values(), *begun.values(), *(call.line for call in function.calls if is_spawn(call))]
            found.append(Spawn(function, tuple(targets), tuple(first), min(lines, default=function.line)))
    return found


def _run(cls: Class, program: Program) -> Function | None:
    """What an object of a class runs in a process of its own, where the class is a process."""
    outside = [
        base
        for part in program.line(cls)
        for base in part.bases
        if base.rpartition(".")[2] in SPAWNS and program.dotted(program.modules[part.module], base) is None
    ]
    return program.method(cls, RUN_METHOD) if outside else None


def _remote(function: Function, graph: Graph) -> Iterator[tuple[Class, int]]:
    """Classes whose objects a function has live in processes of their own, and the line."""
    for call in function.calls:
        made = call.args[0] if is_remote(call) and call.args else ""
        base, _, name = call.func.rpartition(".")
        named = made or (base.removesuffix(".options()") if name == REMOTE_METHOD else "")
        for value in graph.inference.of(named, function) if named else ():
            if isinstance(value, Itself) and (made or _is_remote(value.cls)):
                yield value.cls, call.line


def _is_remote(cls: Class) -> bool:
    return any(decorator.removesuffix(CALL) in REMOTE_CLASSES for decorator in cls.decorators)


def _first(function: Function, program: Program, graph: Graph) -> Iterator[Function]:
    for call in function.calls:
        if chain := spawned(call):
            yield from _callables(chain, function, program, graph)
    yield from _entries(function, program)


def _callables(chain: str, function: Function, program: Program, graph: Graph) -> Iterator[Function]:
    """The functions that a chain may be; of a parameter, what callers pass by its name."""
    for value in graph.inference.of(chain, function):
        if isinstance(value, Code):
            yield value.function
    if any(chain == name for name, _ in function.params):
        for caller in program.all_functions:
            for call in caller.calls:
                for name, passed in call.keywords:
                    if name == chain and passed and passed != chain and not passed.startswith("'"):
                        for value in graph.inference.of(passed, caller):
                            if isinstance(value, Code):
                                yield value.function


def _everything(cls: Class, program: Program, graph: Graph) -> Iterator[Function]:
    yield from graph.constructors(cls)
    for part in program.line(cls):
        for name in part.methods:
            yield from program.functions.get((part.module, part.name, name), [])


def _entries(function: Function, program: Program) -> Iterator[Function]:
    """Functions named by texts such as `package.module:function`, which only another process can be meant to run."""
    texts = list(function.texts)
    module = program.module_of(function)
    names = [name for name in function.defaults.values() if name.isidentifier()]
    names += [arg for call in function.calls for arg in call.args if arg.isupper()]
    texts += [text for name in names if (text := _text(name, module, program))]
    for text in texts:
        if ":" in text:
            found = program.text(text)
            if isinstance(found, Function) and not found.owner:
                yield found


def _text(name: str, module: Module, program: Program) -> str | None:
    """The text constant that a top-level name is."""
    if name in module.texts:
        return module.texts[name]
    origin, attribute = module.imports.get(name, ("", None))
    source = program.module(origin) if attribute else None
    return source.texts.get(attribute) if source is not None and attribute else None


class Callers:
    """Who calls a function.

    Args:
        program: The tree.
        graph: Calls in it.
    """

    def __init__(self, program: Program, graph: Graph) -> None:
        self.program = program
        self.graph = graph
        self._by_name: dict[str, list[Function]] = defaultdict(list)
        self._calls: dict[str, dict[int, list[tuple[Function, int]]]] = {}
        for function in program.all_functions:
            for name in {last_name(call.func) for call in function.calls}:
                self._by_name[name].append(function)

    @cached_property
    def mentioned(self) -> AbstractSet[str]:
        """Last names of everything that is called or handed on anywhere."""
        calls = [call for function in self.program.all_functions for call in function.calls]
        handed = {argument for call in calls for argument in call.args}
        handed.update(value for call in calls for _, value in call.keywords)
        return self._by_name.keys() | set(map(last_name, handed))

    def of(self, target: Function) -> list[tuple[Function, int]]:
        """Functions with a call of another one, and the line of the call."""
        names = {target.name}
        cls = self.program.class_of(target)
        if cls is not None and target.name.startswith("__"):
            names |= {child.name.rpartition(".")[2] for child in self.program.descendants(cls)} | {"cls", "__init__"}
        found: dict[int, tuple[Function, int]] = {}
        for name in sorted(names):
            for caller in self._calling(name).get(id(target), ()):
                found.setdefault(id(caller[0]), caller)
        return list(found.values())

    def _calling(self, name: str) -> dict[int, list[tuple[Function, int]]]:
        """Of the functions that call something by a name: id of what they call -> they, and the line; made once."""
        if name not in self._calls:
            calls: dict[int, list[tuple[Function, int]]] = defaultdict(list)
            for function in self._by_name.get(name, ()):
                for edge in self.graph.edges(function):
                    if edge.typed:
                        calls[id(edge.target)].append((function, edge.line))
            self._calls[name] = dict(calls)
        return self._calls[name]

    def passed(self, target: Function, param: str) -> Iterator[tuple[Function, str]]:
        """Functions with a call of another one, and the chain that they pass for a parameter of it."""
        names = [name for name, _ in target.params]
        if param not in names:
            return
        position = names.index(param) - (1 if target.owner and "staticmethod" not in target.decorators else 0)
        called = {target.name} if not target.name.startswith("__") else {target.owner.rpartition(".")[2], "__init__"}
        called |= {"cls"} if target.name.startswith("__") else set()
        for caller, _ in self.of(target):
            for call in caller.calls:
                if last_name(call.func) in called:
                    yield from ((caller, value) for name, value in call.keywords if name == param and value)
                    if 0 <= position < len(call.args) and call.args[position]:
                        yield caller, call.args[position]

    def above(self, targets: Iterable[Function], depth: int) -> dict[int, tuple[Function, int]]:
        """Everyone from whom a call leads to some functions, and the line of the first such call."""
        found: dict[int, tuple[Function, int]] = {}
        front = list(targets)
        seen = {id(target) for target in front}
        for _ in range(depth):
            after: list[Function] = []
            for target in front:
                for function, line in self.of(target):
                    if id(function) in found:
                        found[id(function)] = (function, min(line, found[id(function)][1]))
                    elif id(function) not in seen:
                        found[id(function)] = (function, line)
                        seen.add(id(function))
                        after.append(function)
            front = after
        return found
