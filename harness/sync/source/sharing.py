"""Whether a worker writes to the engine core's own object: under those executors that have the worker in its process.

There a value leaves with whatever the engine core sends from its copy. Where workers are processes it does not.
"""

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import Final

from staticfire.harness.sync.source.expressions import COPY
from staticfire.harness.sync.source.facts import CALL, Class, Function
from staticfire.harness.sync.source.graph import Graph, Reach
from staticfire.harness.sync.source.inference import tokens
from staticfire.harness.sync.source.processes import Sides
from staticfire.harness.sync.source.shapes import DECODERS
from staticfire.harness.sync.source.spawns import Spawn

_DEPTH: Final = 8
"""Names and calls through which an object is followed back to where it may have been copied."""


class Sharing:
    """The executors under which what a worker writes is the engine core's.

    Args:
        sides: Who runs what.
        graph: Calls.
    """

    def __init__(self, sides: Sides, graph: Graph) -> None:
        self.sides = sides
        self.graph = graph
        self.program = graph.program
        self._within = lru_cache(self._reach)
        self._spawned = lru_cache(lambda spawn: graph.reach(spawn.targets, known=self._told))

    def together(self, writer: Function, base: str) -> Iterator[Class]:
        """Classes that run a function in the engine core's process, on the engine core's object and not on a copy.

        Args:
            writer: The function with the write.
            base: Chain of the object that it writes to; of an object that it makes, the empty one.
        """
        for cls in self.sides.alone:
            reach = self._within(cls)
            if base and id(writer) in reach and not self._copied(base, writer, reach, 0):
                yield cls

    @cached_property
    def _told(self) -> Reach:
        """What runs in workers by what they are told."""
        return self.graph.reach(self.sides.told_apart)

    def apart(self, writer: Function) -> Iterator[Spawn]:
        """Places that start workers which run a function in processes of their own."""
        for spawn in self.sides.workers:
            if id(writer) in self._spawned(spawn):
                yield spawn

    def _reach(self, cls: Class) -> Reach:
        """What runs where a class does the work: its own methods, and what it is told to have its worker do."""
        line = self.program.line(cls)
        relatives = {other for base in line for other in self.program.descendants(base)} - {*line}
        methods = [self.program.method(cls, name) for part in line for name in part.methods]
        reach = self.graph.reach(
            [method for method in methods if method is not None],
            lambda function: self.program.class_of(function) in relatives,
        )
        owners = [own for function, _, _ in reach.values() if (own := self.program.class_of(function))]
        workers = {part for own in owners for part in self.program.line(own)}
        told = [
            telling.target
            for telling in self.sides.told
            if self.program.class_of(telling.teller) not in relatives
            and ((own := self.program.class_of(telling.target)) is None or workers & {*self.program.line(own)})
        ]
        return self.graph.reach(told) | reach

    def _copied(self, chain: str, function: Function, reach: Reach, depth: int) -> bool:
        """Whether an object is a copy, on every way by which it is seen to come."""
        ways = list(self._ways(chain, function, reach)) if depth < _DEPTH else []
        return bool(ways) and all(
            self._new(found + rest, user) if CALL in found else self._copied(found + rest, user, reach, depth + 1)
            for found, rest, user in ways
        )

    def _new(self, chain: str, function: Function) -> bool:
        func, _, rest = chain.partition(CALL)
        decoded = func.rpartition(".")[2] in DECODERS
        return decoded or self.graph.inference.makes_anew(func, rest, function)

    def _ways(self, chain: str, function: Function, reach: Reach) -> Iterator[tuple[str, str, Function]]:
        """What the beginning of a chain was assigned or passed, the rest of the chain, and the function that did it."""
        first, *rest = tokens(chain)
        if first in function.assigns:
            for found in function.assigns[first]:
                if not found.startswith((":", COPY)):
                    yield found, "".join(rest), function
            return
        own = self.program.class_of(function)
        if own is not None and rest and function.params and first == function.params[0][0]:
            name, after = rest[0].removeprefix("."), "".join(rest[1:])
            for part in self.program.line(own):
                for setter in self.graph.inference.setters(part).get(name, ()):
                    for found in setter.assigns[f"{setter.params[0][0]}.{name}"]:
                        if not found.startswith((":", COPY)):
                            yield found, after, setter
            return
        for caller, found in self.sides.callers.passed(function, first):
            if id(caller) in reach:
                yield found, "".join(rest), caller
