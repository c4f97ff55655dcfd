"""Whose object a chain leads to: a part of an engine's configuration, or one that a function has of its own."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from staticfire.harness.sync.source.expressions import COPY, INNER
from staticfire.harness.sync.source.facts import CALL, Class, Function
from staticfire.harness.sync.source.graph import Graph, last_name
from staticfire.harness.sync.source.inference import Instance, Itself, is_property, tokens
from staticfire.harness.sync.source.processes import Sides
from staticfire.harness.sync.source.sections import Sections

_DEPTH: Final = 8
"""Names and calls through which an object is followed back; beyond that it is taken for a part of a configuration."""

Way = tuple[str, Function]


class Origins:
    """Where objects of a section's class come from.

    An object of such a class is no part of a configuration by its class alone: a program may make one for a purpose
    of its own. It is one if it was found in a whole configuration, if it is put into one, or if nothing says otherwise.

    Args:
        sections: The configuration.
        sides: Who runs what.
        graph: Calls.
    """

    def __init__(self, sections: Sections, sides: Sides, graph: Graph) -> None:
        self.sections = sections
        self.sides = sides
        self.graph = graph
        self.program = graph.program
        self.inference = graph.inference
        self._known: dict[tuple[int, str], bool] = {}

    def apart(self, chain: str, function: Function) -> bool:
        """Whether an object is no part of a configuration, on every way by which it is seen to come."""
        key = (id(function), chain)
        if key not in self._known:
            self._known[key] = self._apart(chain, function, frozenset())
        return self._known[key]

    def _apart(self, chain: str, function: Function, seen: frozenset[tuple[int, str]]) -> bool:
        key = (id(function), chain)
        if key in seen:
            return True  # a round trip is no further way
        if len(seen) > _DEPTH or self._through_whole(chain, function) or self._put_in(chain, function):
            return False
        func, call, rest = chain.partition(CALL)
        if call:
            return self.inference.makes_anew(func, rest, function)
        ways = self._ways(chain, function)
        if ways is None:
            return False
        return all(self._apart(found, user, seen | {key}) for found, user in ways)

    def _through_whole(self, chain: str, function: Function) -> bool:
        """Whether a chain leads through a whole configuration, or is one."""
        path = ""
        for part in tokens(chain):
            path += part
            for value in self.inference.of(path, function):
                if isinstance(value, Instance) and value.cls is self.sections.root:
                    return True
        return False

    def _put_in(self, chain: str, function: Function) -> bool:
        """Whether the function makes a section, or a whole configuration, with the object in it."""
        return any(
            chain in (*call.args, *(value for _, value in call.keywords))
            and any(
                isinstance(value, Itself) and value.cls in self.sections.paths
                for value in self.inference.of(call.func, function)
            )
            for call in function.calls
        )

    def _ways(self, chain: str, function: Function) -> list[Way] | None:
        """Chains of the same object here or elsewhere: None where one is not seen, none where nobody hands it in."""
        first, *parts = tokens(chain)
        rest = "".join(parts)
        names = [name for name, _ in function.params]
        own = self.program.class_of(function)
        me = own is not None and names[:1] == [first] and "staticmethod" not in function.decorators
        assigned = [found for found in function.assigns.get(first, ()) if not found.startswith((":", INNER))]
        ways: list[Way] = [(f"{found}{rest}", function) for found in map(_bare, assigned) if found != first]
        if own is not None and me:
            return self._of_self(own, parts, function)
        if first in names:
            handed = self._handed(first, function)
            return None if handed is None else [*ways, *((f"{found}{rest}", caller) for found, caller in handed)]
        return ways or None

    def _of_self(self, own: Class, parts: list[str], function: Function) -> list[Way] | None:
        if own in self.sections.paths:
            return list(self._asked(function, "".join(parts))) or None
        if not parts:
            return None
        name, rest = parts[0].removeprefix("."), "".join(parts[1:])
        ways = [
            (f"{_bare(found)}{rest}", setter)
            for part in self.program.line(own)
            for setter in self.inference.setters(part).get(name, ())
            for found in setter.assigns[f"{setter.params[0][0]}.{name}"]
            if not found.startswith((":", INNER))
        ]
        return ways or None

    def _handed(self, param: str, function: Function) -> list[Way] | None:
        """What callers pass for a parameter; None where somebody may call it who is not seen to."""
        passed = [(found, caller) for caller, found in self.sides.callers.passed(function, param)]
        if passed:
            return passed
        if function.name.startswith("__"):
            own = self.program.class_of(function)
            names = {function.name, own.name.rpartition(".")[2]} if own is not None else {function.name}
        else:
            names = {function.name}
        return None if names & self.sides.callers.mentioned else []

    def _asked(self, method: Function, rest: str) -> Iterator[Way]:
        """The objects of which the front end asks a method of the configuration."""
        for asker in self._askers.get(method.name, ()):
            if any(edge.target is method and edge.typed for edge in self.graph.edges(asker)):
                _, ready = self.sides.ready.get(id(asker), (asker, 0))
                for base, line in self._bases(method.name, asker):
                    if line > ready:
                        yield f"{base}{rest}", asker

    @staticmethod
    def _bases(name: str, function: Function) -> Iterator[tuple[str, int]]:
        for call in function.calls:
            base, _, last = call.func.rpartition(".")
            if last == name and base:
                yield base, call.line
        for chain, lines in function.loads.items():
            found = f".{name}"
            base, dot, after = chain.partition(found)
            if dot and base and not after[:1].isidentifier():
                yield base, lines[-1]

    @cached_property
    def _askers(self) -> dict[str, list[Function]]:
        """Name of a method of the configuration -> functions of the front end, or of it itself, that mention it."""
        named: set[str] = set()
        looked_up: set[str] = set()
        for cls in self.sections.paths:
            for name in cls.methods:
                named.add(name)
                if any(map(is_property, self.program.functions.get((cls.module, cls.name, name), ()))):
                    looked_up.add(name)
        found: dict[str, list[Function]] = defaultdict(list)
        for function in self.program.all_functions:
            here = id(function) in self.sides.front or id(function) in self.sides.ready
            if here or self.program.class_of(function) in self.sections.paths:
                mentioned = {last_name(call.func) for call in function.calls} & named
                mentioned |= {part for chain in function.loads for part in chain.split(".")[1:]} & looked_up
                for name in mentioned:
                    found[name].append(function)
        return found


def _bare(chain: str) -> str:
    return chain.removeprefix(COPY)
