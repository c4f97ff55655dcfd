"""The messages that bring what an engine settled back to its client, found by what is done with them.

Two shapes: a class that the engine's side makes out of its configuration and the client's side decodes and writes into
its own; and a class whose fields declare in their annotations which field of the configuration each of them settles.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from staticfire.harness.sync.source.expressions import chain
from staticfire.harness.sync.source.facts import CALL, Call, Class, Function
from staticfire.harness.sync.source.flow import Flow, calls_of, node_of
from staticfire.harness.sync.source.inference import Inference, Instance, Itself
from staticfire.harness.sync.source.program import Program
from staticfire.harness.sync.source.sections import Path, Sections, root_of
from staticfire.harness.sync.source.shapes import CONSTRUCTORS, DECODERS

TreeOf = Callable[[str], ast.Module]
"""Shown path -> syntax tree."""


@dataclass(slots=True)
class Channel:
    """One message class.

    Attributes:
        cls: Its class.
        makers: Functions that make it.
        appliers: Functions that write what it says into a configuration.
        carries: Field of the configuration -> field of the message, and where that is filled in: path and line.
        applies: Field of the configuration -> where the client takes it over, and from which fields of the message.
    """

    cls: Class
    makers: list[Function] = field(default_factory=list)
    appliers: list[Function] = field(default_factory=list)
    carries: dict[Path, tuple[str, str, int]] = field(default_factory=dict)
    applies: dict[Path, tuple[str, int, frozenset[str]]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.cls.name


@dataclass(slots=True)
class Found:
    """The channels of a tree, and the configuration they speak of."""

    sections: Sections
    channels: list[Channel]


def find(program: Program, inference: Inference, tree_of: TreeOf) -> Found | None:
    """Find the channels.

    Args:
        program: The tree.
        inference: Types in it.
        tree_of: Parses a file again.

    Returns:
        None where there is no such message.
    """
    declared = _declared(program, inference)
    if declared is not None:
        return declared
    search = _Search(program, inference, tree_of)
    decoded = search.decoded()
    makers = search.makers(set(decoded))
    candidates = {cls: functions for cls, functions in decoded.items() if makers[cls]}
    seen = [cls for functions in candidates.values() for function in functions for cls in search.written(function)]
    root = root_of(program, inference, seen)
    if root is None:
        return None
    sections = Sections(program, inference, root)
    channels = []
    for cls, appliers in candidates.items():
        channel = Channel(cls, makers[cls], appliers)
        search.apply(channel, sections)
        search.carry(channel, sections)
        if channel.carries and channel.applies:
            channels.append(channel)
    return Found(sections, channels) if channels else None


class _Search:
    def __init__(self, program: Program, inference: Inference, tree_of: TreeOf) -> None:
        self.program = program
        self.inference = inference
        self.tree_of = tree_of

    def decoded(self) -> dict[Class, list[Function]]:
        """Classes that bytes are decoded to, with the functions that do it."""
        found: dict[Class, list[Function]] = defaultdict(list)
        for function in self.program.all_functions:
            for call in function.calls:
                if call.func.removesuffix("()").rpartition(".")[2] not in DECODERS:
                    continue
                for cls in (*self._said(call, function), *self._annotated(call, function)):
                    for user in (function, *self._decoding(function)):
                        if cls.fields and user not in found[cls]:
                            found[cls].append(user)
        return found

    def _said(self, call: Call, function: Function) -> Iterator[Class]:
        """The classes that a decoding call is given."""
        for argument in (*call.args, *(value for name, value in call.keywords if name == "type")):
            yield from self._named(argument, function)

    def _annotated(self, call: Call, function: Function) -> Iterator[Class]:
        """The classes in the annotation of the name that a decoding call's result gets."""
        for assigned in function.assigns.values():
            if f"{call.func}{CALL}" in assigned:
                said = tuple(item[1:] for item in assigned if item.startswith(":"))
                for value in self.inference.annotated(said, self.program.module_of(function)):
                    if isinstance(value, Instance) and not value.nested:
                        yield value.cls

    def _decoding(self, maker: Function) -> Iterator[Function]:
        """Methods of a class that use the decoder which its constructor makes."""
        own = self.program.class_of(maker)
        for name in own.methods if own is not None and maker.name in CONSTRUCTORS else ():
            for method in self.program.functions.get((maker.module, maker.owner, name), ()):
                if any(call.func.rpartition(".")[2] in DECODERS for call in method.calls):
                    yield method

    def _named(self, argument: str, function: Function) -> Iterator[Class]:
        if argument and not argument.startswith("'"):
            for value in self.inference.of(argument, function):
                if isinstance(value, Itself):
                    yield value.cls

    def makers(self, classes: set[Class]) -> dict[Class, list[Function]]:
        """Functions that make objects of some classes."""
        names = {cls.name.rpartition(".")[2] for cls in classes} | {"cls"}
        found: dict[Class, list[Function]] = {cls: [] for cls in classes}
        for function in self.program.all_functions:
            for call in function.calls:
                if call.func.rpartition(".")[2] in names and (call.args or call.keywords):
                    for cls in self._named(call.func, function):
                        if cls in found and function not in found[cls]:
                            found[cls].append(function)
        return found

    def written(self, function: Function) -> list[Class]:
        """Classes of the objects along the chains that a function assigns to."""
        found = []
        for write in function.writes:
            base = write.base
            while base:
                found += [value.cls for value in self.inference.of(base, function) if isinstance(value, Instance)]
                base = base.rpartition(".")[0]
            for assigned in function.assigns.get(write.base, ()):
                base = assigned
                while base and not base.startswith(":"):
                    found += [value.cls for value in self.inference.of(base, function) if isinstance(value, Instance)]
                    base = base.rpartition(".")[0]
        return found

    def apply(self, channel: Channel, sections: Sections) -> None:
        """Note what the client takes over: where it decodes the message, and where it hands it on."""
        self._apply(channel, channel.appliers, sections)
        if channel.applies:
            modules = {function.module for function in channel.appliers}
            taking = [one for one in self._taking(channel.cls) if one.module in modules]
            self._apply(channel, taking, sections)
            for function in (*channel.appliers, *taking):
                self._apply_all(channel, function, sections)

    def _apply_all(self, channel: Channel, function: Function, sections: Sections) -> None:
        """Note `setattr(section, computed, …)`: every field of the message that has the name of one there."""
        for write in function.writes:
            for item in channel.cls.fields if write.name is None else ():
                place, copied = sections.place(write.base, item.name, function)
                if place is not None and not copied:
                    channel.applies.setdefault(place, (function.path, write.line, frozenset({item.name})))

    def _apply(self, channel: Channel, functions: Sequence[Function], sections: Sections) -> None:
        names = {item.name for item in channel.cls.fields}
        for function in functions:
            node = node_of(self.tree_of(function.path), function)
            if node is None:
                continue
            for put in Flow(node).puts():
                fields = frozenset(
                    last
                    for source in put.sources
                    if (last := source.rpartition(".")[2]) in names and self._is(source, channel.cls, function)
                )
                place, copied = sections.place(put.base, put.name, function)
                if fields and place is not None and not copied:
                    channel.applies.setdefault(place, (function.path, put.line, fields))

    def _taking(self, cls: Class) -> Iterator[Function]:
        """Functions that are given a message."""
        for function in self.program.all_functions:
            said = [kind for _, kinds in function.params for kind in kinds]
            if any(kind.rpartition(".")[2] == cls.name for kind in said):
                values = self.inference.annotated(tuple(said), self.program.module_of(function))
                if any(isinstance(value, Instance) and value.cls is cls for value in values):
                    yield function

    def _is(self, source: str, cls: Class, function: Function) -> bool:
        """Whether a chain reads a field of the decoded message."""
        base = source.rpartition(".")[0]
        values = self.inference.of(base, function)
        if any(isinstance(value, Instance) and value.cls is cls for value in values):
            return True
        return any(assigned.endswith("()") for assigned in function.assigns.get(base, ()))

    def carry(self, channel: Channel, sections: Sections) -> None:
        """Note what the engine fills in."""
        order = [item.name for item in channel.cls.fields]
        for function in channel.makers:
            node = node_of(self.tree_of(function.path), function)
            if node is None:
                continue
            flow = Flow(node)
            made = [call for call in function.calls if channel.cls in set(self._named(call.func, function))]
            for call in calls_of(node, [call.line for call in made]):
                if chain(call.func) not in {item.func for item in made}:
                    continue
                given = [(name, value) for name, value in zip(order, call.args, strict=False)]
                given += [(keyword.arg or "", keyword.value) for keyword in call.keywords]
                for name, value in given:
                    for source in flow.sources(value):
                        base, _, attribute = source.rpartition(".")
                        place, _ = sections.place(base, attribute, function)
                        if place is not None:
                            channel.carries.setdefault(place, (name, function.path, value.lineno))


def _declared(program: Program, inference: Inference) -> Found | None:
    """A channel whose fields say in their annotations what they settle."""
    declaring = [cls for cls in program.classes.values() if sum(bool(item.declares) for item in cls.fields) > 1]
    best: Found | None = None
    for cls in declaring:
        texts = [text for item in cls.fields for text in item.declares]
        firsts = {text.partition(".")[0] for text in texts}
        roots = [
            other
            for other in program.classes.values()
            if len(firsts) == len(firsts & program.fields(other).keys()) and other is not cls
        ]
        for root in roots:
            sections = Sections(program, inference, root)
            known = {str(path): path for path in sections.fields()}
            channel = Channel(cls)
            for item in cls.fields:
                for text in item.declares:
                    if text in known:
                        channel.carries[known[text]] = (item.name, cls.path, item.line)
                        channel.applies[known[text]] = (cls.path, item.line, frozenset({item.name}))
            if channel.carries and (best is None or len(channel.carries) > len(best.channels[0].carries)):
                best = Found(sections, [channel])
    if best is not None:
        search = _Search(program, inference, lambda _: ast.Module([], []))
        channel = best.channels[0]
        channel.makers = search.makers({channel.cls})[channel.cls]
        channel.appliers = [
            function
            for function in program.all_functions
            if any(
                isinstance(value, Instance) and value.cls is channel.cls
                for _, types in function.params
                for value in inference.annotated(types, program.module_of(function))
            )
            and function.module != channel.cls.module
        ]
    return best
