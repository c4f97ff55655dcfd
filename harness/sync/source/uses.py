"""Where fields of the configuration are written and read."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Final

from staticfire.harness.sync.source.facts import CALL, Class, Function, Write
from staticfire.harness.sync.source.graph import Graph
from staticfire.harness.sync.source.inference import Instance, Itself
from staticfire.harness.sync.source.origins import Origins
from staticfire.harness.sync.source.processes import Sides
from staticfire.harness.sync.source.report import Place
from staticfire.harness.sync.source.sections import Path, Sections
from staticfire.harness.sync.source.shapes import BULK_READERS, CONSTRUCTORS, MAPPING, NESTED_READERS, VALIDATORS

TOLD_DEPTH: Final = 4
"""Calls through which a value is followed back to the start of its process."""


class Uses:
    """Writes after the copy, and reads once the engines are ready.

    Args:
        sections: The configuration.
        sides: Who runs what.
        graph: Calls.

    Attributes:
        writes: Field -> process -> places.
        reads: Field -> places, those that read nothing else of an object of known type first.
        writers: Field -> functions that write it in a worker, with the chain of the object; empty for one they make.
        placed: Process -> how many assignments.
        undecided: Why an assignment was not counted -> how often.
        seen: Assignments to fields anywhere.
    """

    def __init__(self, sections: Sections, sides: Sides, graph: Graph) -> None:
        self.sections = sections
        self.sides = sides
        self.graph = graph
        self.program = graph.program
        self.inference = graph.inference
        self.origins = Origins(sections, sides, graph)
        self.writes: dict[Path, dict[str, list[Place]]] = defaultdict(lambda: defaultdict(list))
        self.reads: dict[Path, list[Place]] = defaultdict(list)
        self.writers: dict[Path, list[tuple[Function, str]]] = defaultdict(list)
        self.placed: Counter[str] = Counter()
        self.undecided: Counter[str] = Counter()
        self.seen = 0
        self._names = {path.name for path in sections.fields()}
        self._frozen = {cls: any(part.frozen for part in self.program.line(cls)) for cls in sections.paths}
        for function in self.program.all_functions:
            self._write(function)
        self._read()

    def _write(self, function: Function) -> None:
        for path, line, why, base in self._written(function):
            if path is not None:
                self.seen += 1
            if why:
                self.undecided[why] += 1
                continue
            process = self.sides.process(function)
            if id(function) in self.sides.before:
                self.placed["before the copy"] += 1
                if process is not None:
                    self.undecided["runs before the copy as well"] += 1
            elif process is None:
                front = id(function) in self.sides.front or id(function) in self.sides.ready
                self.placed["front end"] += front
                self.undecided["nobody seen to call it"] += not front
            elif path is not None:
                self.placed[process] += 1
                self.writes[path][process].append(Place(function.path, line))
                if process == "worker":
                    self.writers[path].append((function, base))

    def _written(self, function: Function) -> Iterator[tuple[Path | None, int, str, str]]:
        """Field, line, why it does not count, and the chain of the object, empty for one that is made."""
        settled = self._new_sections(function)
        yield from self._assigned(function, settled)
        for call in function.calls:
            cls = self._made(call.func, call.args, function)
            if cls is None or not (self._frozen[cls] or f"{call.func}{CALL}" in settled):
                continue
            for name, value in call.keywords:
                if name and self.sections.is_field(cls, name):
                    base, _, last = value.rpartition(".")
                    if last != name or self._section(base, function) is None:  # x=config.x hands on what was
                        yield Path(self.sections.paths[cls], name), call.line, "", ""
                elif not name:
                    self.undecided["** into a section"] += 1

    def _assigned(self, function: Function, settled: set[str]) -> Iterator[tuple[Path | None, int, str, str]]:
        """What is assigned to attributes."""
        restored = self._restored(function)
        placed = self.sides.process(function) is not None
        for write in function.writes:
            if write.name is None:
                if self._section(write.base, function):
                    yield None, write.line, f"{write.how} of a computed name", write.base
                continue
            path, copied = self.sections.place(write.base, write.name, function)
            if path is not None:
                copied = copied and write.base.partition(".")[0] not in settled
                yield path, write.line, self._no_news(path, write, function, copied, restored), write.base
            elif placed and write.name in self._names and not self.inference.of(write.base, function):
                handed = self._handed(write.base, write.name, function, 0)
                yield from ((path, write.line, "", write.base) for path in handed)
                if not handed:
                    yield None, write.line, "object of unknown type", write.base

    def _handed(self, base: str, name: str, function: Function, depth: int) -> set[Path]:
        """The fields that a function writes whose parameter says no type: of what those who call it hand in."""
        first, dot, rest = base.partition(".")
        found: set[Path] = set()
        for caller, passed in self.sides.callers.passed(function, first) if depth < TOLD_DEPTH else ():
            if self.sides.process(caller) is None:
                continue
            there = f"{passed}{dot}{rest}"
            if not self.inference.of(there, caller):
                found |= self._handed(there, name, caller, depth + 1)
                continue
            path, copied = self.sections.place(there, name, caller)
            if path is not None and not copied:
                found.add(path)
        return found

    def _new_sections(self, function: Function) -> set[str]:
        """Names and calls whose object a function puts into the configuration in the place of a section."""
        found: set[str] = set()
        for write in function.writes:
            if write.name and write.value and not self.sections.copied(write.base, function):
                cls = self._section(write.base, function)
                if cls is not None and self.sections.holds_section(cls, write.name):
                    found |= {write.value, *function.assigns.get(write.value, ())}
        return found

    def _no_news(self, path: Path, write: Write, function: Function, copied: bool, restored: set[Path]) -> str:
        """Why a write settles nothing that anybody else would have to know; empty if it may."""
        if copied:
            return "into a copy that the function made"
        if write.how == "+= 1":
            return "counted on by each process for itself"
        if write.how == "None?" and path in self._never_none:
            return "in the place of a None that the field cannot hold"
        if path in restored:
            return "put back in the same function"
        if self.sides.process(function) is not None and self._told(write.value, function, 0):
            return "told by the front end"
        if not write.value and (id(function) in self.sides.first or id(function) in self._prepares):
            return "a constant that a process starts from"
        return ""

    @cached_property
    def _prepares(self) -> set[int]:
        """Methods of the configuration that the first function of a process calls on its own copy."""
        return {
            id(edge.target)
            for function in self.sides.first.values()
            for edge in self.graph.edges(function)
            if self.program.class_of(edge.target) in self.sections.paths
        }

    @cached_property
    def _never_none(self) -> set[Path]:
        """Declared fields whose type leaves no None."""
        return {
            path
            for path, (owner, _) in self.sections.fields().items()
            if any(field.name == path.name and not field.optional for field in owner.fields)
        }

    def _restored(self, function: Function) -> set[Path]:
        """Fields that a function sets to what it read from them before, kept under a name that means nothing else."""
        found = set()
        for write in function.writes:
            kept_as: list[str] = function.assigns.get(write.value, []) if write.value.isidentifier() else []
            if len({*kept_as}) == 1 and write.value not in function.rebound:
                kept = kept_as[0]
                base, _, name = kept.rpartition(".")
                if name == write.name and base:
                    path, _ = self.sections.place(base, name, function)
                    if path is not None and path == self.sections.place(write.base, name, function)[0]:
                        found.add(path)
        return found

    def _told(self, value: str, function: Function, depth: int) -> bool:
        """Whether a value comes with a message that the front end makes, or was given to the process at its start."""
        parts = value.split(".")
        for end in range(len(parts) - 1, 0, -1):
            for found in self.inference.of(".".join(parts[:end]), function):
                if isinstance(found, Instance) and found.cls in self._from_front:
                    return True
        if not value.isidentifier() or depth > TOLD_DEPTH:
            return False
        if any(self._told(assigned, function, depth + 1) for assigned in function.assigns.get(value, ())):
            return True
        names = [name for name, _ in function.params]
        if value not in names or value in function.assigns:
            return False
        if id(function) in self.sides.first:
            return True
        return any(
            self._told(passed, caller, depth + 1)
            for caller, passed in self.sides.callers.passed(function, value)
            if self.sides.process(caller) is not None
        )

    @cached_property
    def _from_front(self) -> set[Class]:
        """Classes of messages: made by the front end, and by nobody else."""
        makers: dict[Class, set[bool]] = defaultdict(set)
        classes = [cls for cls in self.program.classes.values() if cls not in self.sections.paths]
        names = {cls.name for cls in classes if cls.fields}
        for function in self.program.all_functions:
            process = self.sides.process(function)
            sides = (self.sides.front, self.sides.starting, self.sides.ready)
            front = any(id(function) in side for side in sides)
            for call in function.calls:
                if call.func.rpartition(".")[2] in names and (call.args or call.keywords):
                    for value in self.inference.of(call.func, function):
                        if isinstance(value, Itself) and value.cls.fields:
                            makers[value.cls].add(front and process is None)
        return {cls for cls, said in makers.items() if said == {True}}

    def _made(self, func: str, args: tuple[str, ...], function: Function) -> Class | None:
        """The section that a call makes anew, or makes a changed copy of."""
        if self.inference.copy_of(func) and args and not args[0].startswith("'"):
            values = [value.cls for value in self.inference.of(args[0], function) if isinstance(value, Instance)]
        else:
            values = [value.cls for value in self.inference.of(func, function) if isinstance(value, Itself)]
        return next((cls for cls in values if cls in self.sections.paths), None)

    def _section(self, base: str, function: Function) -> Class | None:
        for value in self.inference.of(base, function) if base else ():
            if isinstance(value, Instance) and not value.nested and self.sections.section(value.cls) is not None:
                return value.cls
        return None

    def _read(self) -> None:
        bulk: list[tuple[Class, bool, Place]] = []
        by_name: dict[Path, list[Place]] = defaultdict(list)
        taken: set[int] = set()
        pending: list[tuple[Function, int]] = [
            (function, 0) for function, _, _ in self.sides.front.values() if self.sides.in_front(function)
        ]
        pending += list(self.sides.ready.values())
        while pending:
            function, after = pending.pop()
            if id(function) in taken:
                continue
            taken.add(id(function))
            for path, place, known in self._direct(function, after):
                (self.reads if known else by_name)[path].append(place)
            bulk += self._bulk(function, after)
            pending += [(method, 0) for method in self._asked(function, after)]
        fields = self.sections.fields()
        for path in self.reads.keys() | by_name.keys():
            self.reads[path] = [*sorted(self.reads[path]), *sorted(by_name[path])]
        for cls, nested, place in sorted(bulk, key=lambda item: item[2]):
            section = self.sections.section(cls) or ""
            for path in fields.keys() | self.writes.keys():
                inside = nested and f"{path.section}.".startswith(f"{section}." if section else "")
                if path.section == section or inside:
                    self.reads[path].append(place)

    def _direct(self, function: Function, after: int) -> Iterator[tuple[Path, Place, bool]]:
        """Fields that are read, where, and whether the type of the object is known by more than its name."""
        for chain, lines in function.loads.items():
            later = [line for line in lines if line > after]
            base, _, name = chain.rpartition(".")
            while later and base:
                if name.isidentifier():
                    path, _ = self.sections.place(base, name, function)
                    if path is not None and not self._elsewhere(base, function):
                        holder = base.rpartition(".")[0]
                        known = not holder or bool(self.inference.of(holder, function))
                        yield path, Place(function.path, later[0]), known
                base, _, name = base.rpartition(".")

    def _elsewhere(self, chain: str, function: Function) -> bool:
        """Whether an object is no part of the front end's configuration."""
        return self._of_a_worker(chain, function) or self.origins.apart(chain, function)

    def _of_a_worker(self, chain: str, function: Function) -> bool:
        """Whether a chain leads through an object that workers make, and so is read where they run."""
        base = chain.rpartition(".")[0]
        while base:
            for value in self.inference.of(base, function):
                if isinstance(value, Instance) and value.cls not in self.sections.paths:
                    made = [id(method) for method in self.graph.constructors(value.cls)]
                    if any(key in self.sides.worker and key not in self.sides.front for key in made):
                        return True
            base = base.rpartition(".")[0]
        return False

    def _bulk(self, function: Function, after: int) -> Iterator[tuple[Class, bool, Place]]:
        """Sections of which every field is read, whether those inside them are, too, and where."""
        for chain, lines in function.loads.items():
            base, mapping, _ = chain.partition(f".{MAPPING}")
            cls = self._section(base, function) if mapping and lines[-1] > after else None
            if cls is not None and not self.origins.apart(base, function):
                yield cls, False, Place(function.path, lines[-1])
        for call in function.calls:
            base, _, name = call.func.rpartition(".")
            if name in BULK_READERS and call.line > after:
                for chain in (*call.args[:1], base):
                    cls = None if chain.startswith("'") else self._section(chain, function)
                    if cls is not None and not self.origins.apart(chain, function):
                        yield cls, name in NESTED_READERS, Place(function.path, call.line)

    def _asked(self, function: Function, after: int) -> Iterable[Function]:
        """Methods and properties of the configuration itself that a function asks; not those that make it."""
        for edge in self.graph.edges(function):
            cls = self.program.class_of(edge.target)
            if edge.typed and edge.line > after and cls is not None and cls in self.sections.paths:
                checks = any(decorator.removesuffix("()") in VALIDATORS for decorator in edge.target.decorators)
                if edge.target.name not in CONSTRUCTORS and not checks:
                    yield edge.target
