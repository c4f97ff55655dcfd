"""Which process a function runs in: front end, engine core or worker, and before or after the configuration was copied.

Where a class that starts processes has relatives that do the same work in their own process, the relatives are left
out: what is asked is whether values travel, and between objects that are one and the same nothing has to.
"""

import sys
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from staticfire.harness.sync.source.channels import Found
from staticfire.harness.sync.source.facts import Class, Function, Module
from staticfire.harness.sync.source.graph import Graph, Reach
from staticfire.harness.sync.source.inference import Instance
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.shapes import CONSTRUCTORS
from staticfire.harness.sync.source.spawns import Callers, Spawn, spawns
from staticfire.harness.sync.source.telling import Telling, tellings

_NEAR: Final = 3
"""Calls between a class and the place where processes start that still make it the class that starts them."""
_FAR: Final = 12
"""Calls between a program's entry and the place where the ready response is taken in."""


@dataclass(slots=True)
class Sides:
    """The functions of each process.

    Attributes:
        engine: Reached in the engine core; the ways that need no worker processes are left out.
        worker: Reached in a worker.
        before: Reached while a configuration is made, before it is copied.
        front: Reached in the front end once the engines are ready.
        ready: Functions in which the engines get ready, with the line of the call that waits for it.
        first: The first functions of engine cores and of workers, by id.
        starters: Classes of the functions that lead to the start of workers.
        starting: Functions that lead to the start of engine cores, by id.
        callers: Who calls whom.
        workers: Places where workers are started.
        told: What the engine core tells its workers to do, those among them that it has in its own process.
        alone: Relatives of the classes that start workers which do without: they work in the engine core itself.
    """

    callers: Callers

    engine: Reach = field(default_factory=dict)
    worker: Reach = field(default_factory=dict)
    before: Reach = field(default_factory=dict)
    front: Reach = field(default_factory=dict)
    ready: dict[int, tuple[Function, int]] = field(default_factory=dict)
    first: dict[int, Function] = field(default_factory=dict)
    starters: set[Class] = field(default_factory=set)
    starting: set[int] = field(default_factory=set)
    workers: tuple[Spawn, ...] = ()
    told: tuple[Telling, ...] = ()
    alone: frozenset[Class] = frozenset()

    @property
    def told_apart(self) -> list[Function]:
        """What workers in processes of their own are told to do."""
        return [told.target for told in self.told if id(told.teller) in self.engine]

    def process(self, function: Function) -> str | None:
        """Where a function that writes runs: a worker where workers run it, else the engine core."""
        if id(function) in self.worker:
            return "worker"
        return "engine core" if id(function) in self.engine else None

    def in_front(self, function: Function) -> bool:
        """Whether only the front end runs a function, once the engines are ready."""
        key = id(function)
        return key in self.front and key not in self.engine and key not in self.worker


class _Placing:
    def __init__(self, program: Program, graph: Graph, found: Found) -> None:
        self.program = program
        self.graph = graph
        self.found = found
        self.callers = Callers(program, graph)
        self.makers = {id(maker) for channel in found.channels for maker in channel.makers}
        self.appliers = [applier for channel in found.channels for applier in channel.appliers]

    def place(self) -> Sides:
        sides = Sides(self.callers)
        everything = spawns(self.program, self.graph)
        reached = self.graph.reach(_targets(everything))
        make = self.graph.leading(reached, self.makers)
        apply = self.graph.leading(reached, map(id, self.appliers))
        making = [spawn for spawn in everything if make & set(map(id, spawn.targets))]
        engines = [spawn for spawn in making if not apply & set(map(id, spawn.targets))] or making
        inside = self.graph.reach(_targets(engines))
        first = {id(target) for spawn in engines for target in spawn.targets}
        workers = [
            spawn
            for spawn in everything
            if id(spawn.site) in inside and not first & {id(target) for target in spawn.targets}
        ]
        sides.workers = tuple(workers)
        sides.alone = frozenset(self._without_workers(workers))
        sides.first = {id(function): function for spawn in (*engines, *workers) for function in spawn.first}
        leading = [function for function, _ in self.callers.above([spawn.site for spawn in workers], _NEAR).values()]
        telling = [*_targets(engines), *(spawn.site for spawn in workers), *leading]
        families = {
            part for function in telling if (cls := self.program.class_of(function)) for part in self.program.line(cls)
        }
        core = [function for function, _, _ in inside.values()]
        sides.told = tuple(tellings(self.graph, core, families))
        handed = {id(told.target) for told in sides.told if told.handed}
        apart = self._in(sides.alone)
        sides.engine = self.graph.reach(_targets(engines), lambda function: apart(function) or id(function) in handed)
        sides.worker = self.graph.reach([*_targets(workers), *sides.told_apart])
        sides.starting = {id(spawn.site) for spawn in engines}
        sides.starting |= self.callers.above([spawn.site for spawn in engines], _FAR).keys()
        making_config = self._constructing(sides)
        sides.before = self.graph.reach(making_config, typed=True)
        starting = [*(spawn.site for spawn in everything), *leading]
        near = (*(spawn.site for spawn in workers), *leading)
        sides.starters = {cls for function in near if (cls := self.program.class_of(function))}
        self._front(sides, self._without_engines(), {id(function) for function in (*making_config, *starting)})
        return sides

    def _in(self, classes: AbstractSet[Class]) -> Callable[[Function], bool]:
        return lambda function: self.program.class_of(function) in classes

    def _without_workers(self, starting: Iterable[Spawn]) -> set[Class]:
        """Relatives of the classes that start workers, which do their work without: in the engine core itself."""
        sites = [spawn.site for spawn in starting]
        leading = {id(site): site for site in sites}
        leading |= {key: function for key, (function, _) in self.callers.above(sites, _NEAR).items()}
        starters = {cls for function in leading.values() if (cls := self.program.class_of(function))}
        found: set[Class] = set()
        for function in leading.values():
            cls = self.program.class_of(function)
            for base in self.program.line(cls)[1:] if cls else ():
                if function.name not in base.methods:
                    continue
                below = {cls for cls in starters if base in self.program.line(cls)[1:]}
                for child in self.program.descendants(base)[1:]:
                    own = self.program.method(child, function.name)
                    starts = any(child in self.program.line(cls) or cls in self.program.line(child) for cls in below)
                    if own and id(own) not in leading and not starts:
                        found.add(child)
        return found

    def _without_engines(self) -> set[Class]:
        """Relatives of the classes that take in the ready response, which have the engine core in their own process."""
        found: set[Class] = set()
        for applier in self.appliers:
            cls = self.program.class_of(applier)
            for base in self.program.line(cls)[1:] if cls else ():
                found |= {child for child in self.program.descendants(base) if cls not in self.program.line(child)}
        lines = [self.program.line(cls) for applier in self.appliers if (cls := self.program.class_of(applier))]
        return found - {part for line in lines for part in line}

    def _constructing(self, sides: Sides) -> list[Function]:
        """What runs while a configuration is made, before there is anyone to send it to."""
        sections = self.found.sections
        found = [method for cls in sections.paths for method in self.graph.constructors(cls)]
        for function in self.program.all_functions:
            if function.returns and sides.process(function) is None:
                values = self.graph.inference.annotated(function.returns, self.program.module_of(function))
                if any(isinstance(value, Instance) and value.cls is sections.root for value in values):
                    found.append(function)
        return found

    def _front(self, sides: Sides, alone: set[Class], earlier: set[int]) -> None:
        """The front end: whoever waits for the ready response, or has an object that did, goes on with everything.

        What makes configurations or starts processes belongs to a start, of this front end or of another one.
        """
        ready = self.callers.above(self.appliers, _FAR)
        sides.ready = {
            key: entry for key, entry in ready.items() if key not in sides.engine and key not in sides.worker
        }
        roots = [
            edge.target
            for function, line in sides.ready.values()
            for edge in self.graph.edges(function)
            if edge.line > line
        ]
        holders = {
            cls
            for function, _ in sides.ready.values()
            if function.name in CONSTRUCTORS and (cls := self.program.class_of(function)) and cls not in alone
        }
        held = {part for cls in holders for part in (*self.program.line(cls), *self.program.descendants(cls))} - alone
        for cls in held:
            roots += [
                method
                for name in cls.methods
                if name not in CONSTRUCTORS
                for method in self.program.functions.get((cls.module, cls.name, name), [])
            ]
        for function in self.program.all_functions:
            values = [
                value
                for _, types in function.params
                for value in self.graph.inference.annotated(types, self.program.module_of(function))
            ]
            if any(isinstance(value, Instance) and value.cls in held for value in values):
                roots.append(function)
        roots += self._callbacks(sides)
        waiting = sides.ready.keys() | earlier
        stop = self._in(alone)
        sides.front = self.graph.reach(
            [root for root in roots if id(root) not in waiting],
            lambda function: id(function) in waiting or stop(function),
            typed=True,
        )

    def _callbacks(self, sides: Sides) -> list[Function]:
        """Methods that a library calls which no module at work in an engine core or a worker so much as imports."""
        modules = {function.module for function, _, _ in (*sides.engine.values(), *sides.worker.values())}
        theirs = {package for name in modules for package in self._packages(self.program.modules[name])}
        return [
            method
            for cls in self.program.classes.values()
            if (libraries := self._libraries(cls)) and not libraries & theirs
            for name in cls.methods
            if name not in CONSTRUCTORS
            for method in self.program.functions.get((cls.module, cls.name, name), [])
            if sides.process(method) is None and id(method) not in sides.before
        ]

    @staticmethod
    def _packages(module: Module) -> set[str]:
        return {origin.partition(".")[0] for origin, _ in module.imports.values()}

    def _libraries(self, cls: Class) -> set[str]:
        """Packages from outside the tree that a class has bases of."""
        found = set()
        for part in self.program.line(cls):
            module = self.program.modules[part.module]
            for base in part.bases:
                first = base.partition(".")[0].removesuffix("[]")
                if first in module.imports and self.program.resolve(module, first) is None:
                    found.add(module.imports[first][0].partition(".")[0])
        return found - sys.stdlib_module_names


def _targets(found: Iterable[Spawn]) -> tuple[Function, ...]:
    return tuple(dict.fromkeys(target for spawn in found for target in spawn.targets))


def place(program: Program, graph: Graph, found: Found) -> Sides:
    """Tell the functions of front end, engine core and worker apart.

    Args:
        program: The tree.
        graph: Calls in it.
        found: The messages between them.
    """
    return _Placing(program, graph, found).place()
