"""Read one Python file: every test, fixture, helper and script in it, and the sites that they reach."""

import ast
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Guard, Location, ScanConfig, Unknown, Unread
from staticfire.harness.scan.budget import Budget, spending
from staticfire.harness.scan.entries import Entries, Entry, arguments, fixture_node, qualified
from staticfire.harness.scan.interpreter import Interpreter
from staticfire.harness.scan.mentioned import site_nodes
from staticfire.harness.scan.modules import Module, Sources
from staticfire.harness.scan.parameters import Axis, Case, product
from staticfire.harness.scan.results import Contribution, FileResult, configurations, settle
from staticfire.harness.scan.slices import walk
from staticfire.harness.scan.state import Exhausted, Frame, Record, Run, Scope, Stopped
from staticfire.harness.scan.values import Class, Function, Instance, Keys

_COUNTED = 10**9
"""Configurations left out are counted up to here."""
_MANY = 24
"""Parameter sets of one test that are each followed on their own."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class PythonReader:
    """Reads Python files, sharing what they import.

    Args:
        config: What may be assumed, and the limits.
        sources: The files.
    """

    def __init__(self, config: ScanConfig, sources: Sources) -> None:
        self._config = config
        self._sources = sources
        self._interpreter = Interpreter(sources, config)
        self._entries = Entries(self._interpreter, config)
        self._contributions: list[Contribution] = []
        self._truncated: dict[Location, int] = {}
        self._notes: list[Unread] = []
        self._setting: list[tuple[FunctionNode, tuple[ast.ClassDef, ...]]] = []

    def read(self, module: Module, budget: Budget | None = None) -> FileResult:
        """Everything that a file contributes, as far as a budget goes."""
        self._interpreter.budget = budget = budget or self._config.limits.budget()
        with spending(budget):
            return self._read(module)

    def _read(self, module: Module) -> FileResult:
        self._contributions = []
        self._truncated = {}
        self._notes = []
        self._interpreter.dead = {}
        wanted = {(node.lineno, module.place(node).column) for node in site_nodes(module)}
        reach = self._interpreter.reach(module)
        if not wanted and not reach and not module.mentions:
            return FileResult()
        self._setting = list(_setting_fixtures(module))
        for entry in self._entries.entries(module, reach):
            self._guarded(entry, module)
        self._fallback(module, wanted)
        return FileResult(tuple(self._contributions), tuple(self._truncated.items()), tuple(self._notes))

    # Runs

    def _guarded(self, entry: Entry, module: Module) -> None:
        try:
            self._run_all(entry, module)
        except (RecursionError, MemoryError):
            self._note(module, entry, "nested too deeply to be followed")

    def _note(self, module: Module, entry: Entry, why: str) -> None:
        line = entry.function.node.lineno if entry.function is not None else 0
        note = Unread(module.shown, line, f"{entry.name or 'module'}: {why}")
        if note not in self._notes:
            self._notes.append(note)

    def _run_all(self, entry: Entry, module: Module) -> None:
        limits = self._config.limits
        combinations, beyond = product(entry.axes, limits.configurations)
        scope = Scope(module, entry.owners)
        needed = set(self._entries.needed(entry, scope)) if entry.function is not None else set()
        groups = _grouped(entry.axes, combinations, needed)
        if len(groups) > _MANY and entry.function is not None and entry.slice is not None:
            # Too many to follow each: those that differ only in whether they are skipped are followed together.
            groups = _grouped(entry.axes, combinations, set(self._entries.needed(entry, scope, entry.slice.values)))
        places: set[Location] = set()
        for group in groups:
            if self._interpreter.budget.steps <= 0:
                self._note(module, entry, "the file's budget of evaluation is spent")
                break
            for combination in group[:4]:
                records, left = self._explore(entry, module, combination, needed)
                if records:
                    self._store(entry, records, group, left)
                    places.update(record.where for record in records)
                    break
        for where in places:
            self._truncated[where] = min(_COUNTED, self._truncated.get(where, 0) + beyond)

    def _explore(
        self, entry: Entry, module: Module, combination: tuple[Case, ...], needed: set[str]
    ) -> tuple[list[Record], int]:
        """Follow every way through an entry, up to a limit; the records, and how many ways were not followed."""
        limits = self._config.limits
        pending: deque[tuple[int, ...]] = deque([()])
        records: list[Record] = []
        done = 0
        while pending and done < limits.paths:
            prefix = pending.popleft()
            run = self._run(entry, module, combination, prefix, needed)
            done += 1
            records.extend(run.records)
            if run.steps <= 0:
                break
            ways = [way for _, way in run.taken]
            for index in range(len(prefix), len(run.taken)):
                pending.extend((*ways[:index], other) for other in range(1, run.taken[index][0]))
        return records, len(pending)

    def _run(
        self, entry: Entry, module: Module, combination: tuple[Case, ...], prefix: tuple[int, ...], needed: set[str]
    ) -> Run:
        interpreter = self._interpreter
        budget = min(self._config.limits.steps, max(interpreter.budget.steps, 1))
        run = Run(prefix, steps=budget, caller=entry.name, scope=Scope(module, entry.owners))
        interpreter.run = run
        names: dict[str, Any] = {}
        for axis, case in zip(entry.axes, combination, strict=True):
            for name, value in zip(axis.names, case.values, strict=True):
                value = containers.duplicate(value)  # noqa: PLW2901
                if name in axis.indirect:
                    run.requests[name] = value
                else:
                    names[name] = value
                    run.fixtures[name] = value
        try:
            self._start(entry, module, names, needed)
        except Stopped:
            pass
        except Exhausted:
            self._note(module, entry, "evaluation was cut off")
        except containers.TooLarge:
            self._note(module, entry, "builds a value that is too large")
        interpreter.budget.steps -= budget - max(run.steps, 0)
        return run

    def _start(self, entry: Entry, module: Module, names: dict[str, Any], needed: set[str]) -> None:
        interpreter = self._interpreter
        if entry.kind == "module":
            frame = Frame(module, {}, qualified=module.shown, slice=entry.slice, is_test=True)
            interpreter.execute(module.tree.body, frame)
            return
        function = entry.function
        assert function is not None
        assert not isinstance(function.node, ast.Lambda)
        if entry.kind == "fixture":
            bound = interpreter.bind(function, Instance(entry.owners[-1])) if entry.owners else function
            interpreter.run_fixture(bound, function.name)
            return
        self._autouse(entry)
        given = arguments(function)
        if entry.owners and given and given[0] in {"self", "cls"}:
            names[given[0]] = self._receiver(entry.owners[-1])
        for name in given:
            if name in names:
                continue
            if entry.kind == "helper" and interpreter.fixture(name, Scope(module, entry.owners)) is None:
                names[name] = Unknown("parameter", name)
            else:
                names[name] = interpreter.fixture_value(name) if name in needed else Unknown("fixture", name)
        node = function.node
        for arg in (node.args.vararg, node.args.kwarg):
            if arg is not None:
                names[arg.arg] = Unknown("parameter", arg.arg)
        if node.args.kwarg is not None:
            extra = Keys()
            extra.rest = Unknown("parameter", node.args.kwarg.arg)
            names[node.args.kwarg.arg] = extra
        closure = function.closure if isinstance(function.closure, Frame) else None
        frame = Frame(
            module, names, closure, function, entry.name, entry.slice, yields=[], is_test=entry.kind == "test"
        )
        interpreter.execute(node.body, frame)

    def _receiver(self, owner: Class) -> Instance:
        interpreter = self._interpreter
        instance = Instance(owner)
        for name in ("setUpClass", "setup_class", "setUp", "setup_method"):
            value = interpreter.class_attribute(owner, name)
            if isinstance(value, Function):
                interpreter.run.muted += 1
                interpreter.call_function(interpreter.bind(value, instance), [], Keys())
                interpreter.run.muted -= 1
        return instance

    def _autouse(self, entry: Entry) -> None:
        """Run fixtures that every test gets, if they set the environment."""
        for node, owners in self._setting:
            if not owners or (entry.owners and owners[-1] is entry.owners[-1].node):
                self._interpreter.fixture_value(node.name)

    # Results

    def _store(self, entry: Entry, records: list[Record], group: list[tuple[Case, ...]], beyond: int) -> None:
        by_place: dict[Location, list[Record]] = {}
        for record in records:
            by_place.setdefault(record.where, []).append(record)
        for where, found in by_place.items():
            self._truncated[where] = self._truncated.get(where, 0) + beyond
            for combination in group:
                params = "-".join(case.id for case in combination)
                guards = (*entry.guards, *(guard for case in combination for guard in case.guards))
                items = settle([item for record in found for item in configurations(record, params, guards)])
                self._contributions.extend(
                    Contribution(where, found[0].form, found[0].function, item, entry.kind == "helper")
                    for item in items
                )

    def _fallback(self, module: Module, wanted: set[tuple[int, int]]) -> None:
        """Read sites that nothing led to on their own, with the parameters of their functions unknown."""
        self._without_caller(module, wanted, isolated=False)
        self._without_caller(module, wanted, isolated=True)

    def _without_caller(self, module: Module, wanted: set[tuple[int, int]], *, isolated: bool) -> None:
        have = {(item.where.line, item.where.column) for item in self._contributions if item.where.path == module.shown}
        left = wanted - have
        if not left:
            return
        if isolated:
            for site in site_nodes(module):
                if (site.lineno, module.place(site).column) in left:
                    self._isolated(module, site)
            return
        for node, owner_nodes in module.functions:
            if not any(node.lineno <= line <= (node.end_lineno or 0) for line, _ in left):
                continue
            owners = self._entries.owners(module, owner_nodes)
            if owners is None:
                continue
            function = self._entries.function(module, node, owners)
            if function is not None:
                cut = self._interpreter.slice_of(function)
                entry = Entry(qualified(node, owners), "helper", function, owners, slice=cut)
                self._guarded(entry, module)

    def _isolated(self, module: Module, node: ast.expr) -> None:
        """Read one site in a place that nothing was seen to reach."""
        names: dict[str, Any] = {}
        for function, _ in module.functions:
            if function.lineno <= node.lineno <= (function.end_lineno or 0):
                for child in walk(function):
                    if isinstance(child, ast.arg):
                        names[child.arg] = Unknown("parameter", child.arg)
                    elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                        names.setdefault(child.id, Unknown("unreached", child.id))
        interpreter = self._interpreter
        run = Run(steps=self._config.limits.steps)
        interpreter.run = run
        frame = Frame(module, names, qualified=module.shown)
        with suppress(Stopped, Exhausted, containers.TooLarge, RecursionError):
            interpreter.evaluate(node, frame)
        guards = [
            Guard("skip", text, module.place(node), decided=True)
            for path, first, last, text in interpreter.dead.values()
            if path == module.shown and first <= node.lineno <= last
        ]
        entry = Entry("", "helper", None, guards=guards)
        mine = [item for item in run.records if item.where == module.place(node)]
        self._store(entry, mine, [()], 0)


def _setting_fixtures(module: Module) -> Iterator[tuple[FunctionNode, tuple[ast.ClassDef, ...]]]:
    """Fixtures that every test of a module or class gets and that set its environment, with their classes."""
    for node, owners in module.functions if "autouse" in module.text else ():
        source = "\n".join(module.lines[node.lineno - 1 : node.end_lineno])
        if fixture_node(node, "autouse") and ("setenv" in source or "environ" in source or "setattr" in source):
            yield node, owners


def _grouped(axes: list[Axis], combinations: list[tuple[Case, ...]], needed: set[str]) -> list[list[tuple[Case, ...]]]:
    """Combinations that are alike in every name that matters, together."""
    matters = [bool(needed.intersection(axis.names)) or bool(axis.indirect) for axis in axes]
    groups: dict[tuple[int, ...], list[tuple[Case, ...]]] = {}
    for combination in combinations:
        key = tuple(id(case) if matter else 0 for case, matter in zip(combination, matters, strict=True))
        groups.setdefault(key, []).append(combination)
    return list(groups.values())
