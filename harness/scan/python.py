"""Read one Python file: every test, fixture, helper and script in it, and the sites that they reach."""

import ast
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from staticfire.harness.scan import containers, forms
from staticfire.harness.scan.base import Guard, Location, ScanConfig, Unknown, Unread
from staticfire.harness.scan.interpreter import Interpreter
from staticfire.harness.scan.modules import Module, Sources
from staticfire.harness.scan.names import fixture_call, is_fixture
from staticfire.harness.scan.parameters import Axis, Case, Parameters, decorators_of, product
from staticfire.harness.scan.results import Contribution, FileResult, configurations, settle
from staticfire.harness.scan.slices import Slice, slice_block, terminal, walk
from staticfire.harness.scan.state import Exhausted, Frame, Record, Run, Scope, Stopped
from staticfire.harness.scan.values import Class, Function, Instance, Keys

_COUNTED = 10**9
"""Configurations left out are counted up to here."""
_MANY = 24
"""Parameter sets of one test that are each followed on their own."""

MENTIONED = re.compile(forms.MENTION.pattern.decode())
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class _Entry:
    """Something that runs: a test, a fixture, a helper on its own, or the module."""

    name: str
    kind: str
    function: Function | None
    owners: tuple[Class, ...] = ()
    axes: list[Axis] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    slice: Slice | None = None


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
        self._parameters = Parameters(self._interpreter)
        self._contributions: list[Contribution] = []
        self._truncated: dict[Location, int] = {}
        self._notes: list[Unread] = []

    def read(self, module: Module) -> FileResult:
        """Everything that a file contributes."""
        self._contributions = []
        self._truncated = {}
        self._notes = []
        self._interpreter.file_steps = self._config.limits.file_steps
        self._interpreter.dead = {}
        wanted = set(sites_of(module))
        reach = self._interpreter.reach(module)
        if not wanted and not reach and not forms.MENTION.search(module.text.encode()):
            return FileResult()
        for entry in self._entries(module, reach):
            self._guarded(entry, module)
        self._fallback(module, wanted)
        return FileResult(tuple(self._contributions), tuple(self._truncated.items()), tuple(self._notes))

    # Entries

    def _entries(self, module: Module, reach: frozenset[str]) -> Iterator[_Entry]:
        led = self._interpreter.led(module)
        for node, owner_nodes in module.functions:
            index = bisect_left(led, node.lineno)
            if index == len(led) or led[index] > (node.end_lineno or 0):
                continue
            test = node.name.startswith("test")
            if not test and (node.name not in reach or not _fixture_node(node)):
                continue
            owners = self._owners(module, owner_nodes)
            if owners is None:
                continue
            function = self._function(module, node, owners)
            if function is None:
                continue
            if test:
                cut = self._interpreter.slice_of(function, value=False)
                if cut.statements:
                    yield self._test(module, function, owners, cut)
            elif is_fixture(function):
                yield from self._fixtures(module, function, owners)
        body = slice_block(module.tree, reach, value=False)
        if any(id(statement) in body.statements for statement in module.tree.body):
            yield _Entry("", "module", None, slice=body)

    def _owners(self, module: Module, nodes: tuple[ast.ClassDef, ...]) -> tuple[Class, ...] | None:
        found: list[Class] = []
        for node in nodes:
            value = (
                self._interpreter.members(found[-1]).get(node.name)
                if found
                else self._interpreter.module_name(module, node.name)
            )
            if not isinstance(value, Class):
                return None
            found.append(value)
        return tuple(found)

    def _function(self, module: Module, node: FunctionNode, owners: tuple[Class, ...]) -> Function | None:
        if owners:
            value = self._interpreter.members(owners[-1]).get(node.name)
        else:
            value = self._interpreter.module_name(module, node.name)
        if isinstance(value, Function) and value.node is node:
            return value
        return Function(node, module, owners[-1] if owners else None, name=node.name)

    def _test(self, module: Module, function: Function, owners: tuple[Class, ...], cut: Slice) -> _Entry:
        assert not isinstance(function.node, ast.Lambda)
        decorators = decorators_of(self._interpreter, module, function.node, owners)
        with _budget(self._interpreter, self._config):
            axes = self._parameters.axes(decorators)
            guards = [*self._parameters.module_guards(module), *self._parameters.guards(decorators)]
        entry = _Entry(_qualified(function.node, owners), "test", function, owners, axes, guards, cut)
        entry.axes = [*self._fixture_axes(entry, module), *axes]
        return entry

    def _fixture_axes(self, entry: _Entry, module: Module) -> list[Axis]:
        """Axes of the parametrized fixtures that matter to a test."""
        assert entry.function is not None
        scope = Scope(module, entry.owners)
        taken = {name for axis in entry.axes for name in axis.names}
        found: list[Axis] = []
        for name in self._needed(entry, scope):
            if name in taken:
                continue
            fixture = self._interpreter.fixture(name, scope)
            if fixture is not None and (axis := self._own_axis(fixture, name)) is not None:
                found.append(axis)
        return found

    def _own_axis(self, fixture: Function, name: str) -> Axis | None:
        call = fixture_call(fixture)
        if call is None:
            return None
        frame = Frame(fixture.module, {}, qualified=fixture.module.shown)
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        if "params" not in given:
            return None
        with _budget(self._interpreter, self._config):
            values = self._interpreter.evaluate(given["params"], frame)
            ids = self._interpreter.evaluate(given["ids"], frame) if "ids" in given else None
            return self._parameters.cases((name,), values, ids, frozenset({name}), frame)
        return None

    def _needed(self, entry: _Entry, scope: Scope, among: frozenset[str] | None = None) -> list[str]:
        """Arguments of a test whose values matter, and the fixtures that these need in turn."""
        assert entry.function is not None
        if among is None and entry.slice is not None:
            among = entry.slice.names
        names = [name for name in _arguments(entry.function) if among is None or name in among]
        done: list[str] = []
        while names:
            name = names.pop(0)
            if name in done or name in {"request", "self", "monkeypatch"}:
                continue
            done.append(name)
            fixture = self._interpreter.fixture(name, scope)
            if fixture is not None:
                names.extend(_arguments(fixture))
        return done

    def _fixtures(self, module: Module, function: Function, owners: tuple[Class, ...]) -> Iterator[_Entry]:
        name = function.name
        axis = self._own_axis(function, name)
        qualified = f"{'.'.join([*(owner.name for owner in owners), name])}"
        cut = self._interpreter.slice_of(function)
        entry = _Entry(qualified, "fixture", function, owners, slice=cut)
        scope = Scope(module, owners)
        needed = [other for other in self._needed(entry, scope) if other != name]
        for other in needed:
            fixture = self._interpreter.fixture(other, scope)
            if fixture is not None and (inner := self._own_axis(fixture, other)) is not None:
                entry.axes.append(inner)
        passed = self._indirect(module, name)
        if passed:
            for given in passed:
                yield _Entry(qualified, "fixture", function, owners, [*entry.axes, given], slice=cut)
            return
        if axis is not None:
            entry.axes.append(axis)
        yield entry

    def _indirect(self, module: Module, name: str) -> list[Axis]:
        """Values that the file's tests pass to a fixture."""
        if "indirect" not in module.text:
            return []
        found: list[Axis] = []
        for node, owner_nodes in module.functions:
            if not node.name.startswith("test") or name not in _argument_names(node.args):
                continue
            owners = self._owners(module, owner_nodes)
            if owners is None:
                continue
            with _budget(self._interpreter, self._config):
                for axis in self._parameters.axes(decorators_of(self._interpreter, module, node, owners)):
                    if name in axis.indirect and axis not in found:
                        found.append(axis)
        return found

    # Runs

    def _guarded(self, entry: _Entry, module: Module) -> None:
        try:
            self._run_all(entry, module)
        except (RecursionError, MemoryError):
            self._note(module, entry, "nested too deeply to be followed")

    def _note(self, module: Module, entry: _Entry, why: str) -> None:
        line = entry.function.node.lineno if entry.function is not None else 0
        note = Unread(module.shown, line, f"{entry.name or 'module'}: {why}")
        if note not in self._notes:
            self._notes.append(note)

    def _run_all(self, entry: _Entry, module: Module) -> None:
        limits = self._config.limits
        combinations, beyond = product(entry.axes, limits.configurations)
        scope = Scope(module, entry.owners)
        needed = set(self._needed(entry, scope)) if entry.function is not None else set()
        groups = _grouped(entry.axes, combinations, needed)
        if len(groups) > _MANY and entry.function is not None and entry.slice is not None:
            # Too many to follow each: those that differ only in whether they are skipped are followed together.
            groups = _grouped(entry.axes, combinations, set(self._needed(entry, scope, entry.slice.values)))
        places: set[Location] = set()
        for group in groups:
            if self._interpreter.file_steps <= 0:
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
        self, entry: _Entry, module: Module, combination: tuple[Case, ...], needed: set[str]
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
        self, entry: _Entry, module: Module, combination: tuple[Case, ...], prefix: tuple[int, ...], needed: set[str]
    ) -> Run:
        interpreter = self._interpreter
        budget = min(self._config.limits.steps, max(interpreter.file_steps, 1))
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
        interpreter.file_steps -= budget - max(run.steps, 0)
        return run

    def _start(self, entry: _Entry, module: Module, names: dict[str, Any], needed: set[str]) -> None:
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
        self._autouse(entry, module)
        arguments = _arguments(function)
        if entry.owners and arguments and arguments[0] in {"self", "cls"}:
            names[arguments[0]] = self._receiver(entry.owners[-1])
        for name in arguments:
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

    def _autouse(self, entry: _Entry, module: Module) -> None:
        """Run fixtures that every test gets, if they set the environment."""
        if "autouse" not in module.text:
            return
        for node, owners in module.functions:
            if owners and (not entry.owners or owners[-1] is not entry.owners[-1].node):
                continue
            source = "\n".join(module.lines[node.lineno - 1 : node.end_lineno])
            if _fixture_node(node, "autouse") and ("setenv" in source or "environ" in source or "setattr" in source):
                self._interpreter.fixture_value(node.name)

    # Results

    def _store(self, entry: _Entry, records: list[Record], group: list[tuple[Case, ...]], beyond: int) -> None:
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
            owners = self._owners(module, owner_nodes)
            if owners is None:
                continue
            function = self._function(module, node, owners)
            if function is not None:
                cut = self._interpreter.slice_of(function)
                entry = _Entry(_qualified(node, owners), "helper", function, owners, slice=cut)
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
        entry = _Entry("", "helper", None, guards=guards)
        mine = [item for item in run.records if item.where == module.place(node)]
        self._store(entry, mine, [()], 0)


class _budget:  # noqa: N801
    """A fresh, joined run for what stands in decorators; what it cannot do stays undone."""

    def __init__(self, interpreter: Interpreter, config: ScanConfig) -> None:
        self._interpreter = interpreter
        self._steps = config.limits.steps * 4

    def __enter__(self) -> None:
        self._saved = self._interpreter.run
        self._interpreter.run = Run(joined=True, steps=self._steps, muted=1)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        self._interpreter.file_steps -= self._steps - max(self._interpreter.run.steps, 0)
        self._interpreter.run = self._saved
        return kind is not None and issubclass(kind, Exhausted | containers.TooLarge | Stopped)


def _grouped(axes: list[Axis], combinations: list[tuple[Case, ...]], needed: set[str]) -> list[list[tuple[Case, ...]]]:
    """Combinations that are alike in every name that matters, together."""
    matters = [bool(needed.intersection(axis.names)) or bool(axis.indirect) for axis in axes]
    groups: dict[tuple[int, ...], list[tuple[Case, ...]]] = {}
    for combination in combinations:
        key = tuple(id(case) if matter else 0 for case, matter in zip(combination, matters, strict=True))
        groups.setdefault(key, []).append(combination)
    return list(groups.values())


def _fixture_node(node: FunctionNode, argument: str = "") -> bool:
    for item in node.decorator_list:
        target = item.func if isinstance(item, ast.Call) else item
        if terminal(target) == "fixture":
            return not argument or (isinstance(item, ast.Call) and any(kw.arg == argument for kw in item.keywords))
    return False


def _argument_names(spec: ast.arguments) -> list[str]:
    return [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def _arguments(function: Function) -> list[str]:
    return _argument_names(function.node.args)


def _qualified(node: FunctionNode, owners: tuple[Class, ...]) -> str:
    return ".".join([*(owner.name for owner in owners), node.name])


def site_nodes(module: Module) -> Iterator[ast.expr]:
    """Every call by a constructing name, and every list that starts an engine's command."""
    if not forms.MENTION.search(module.text.encode()):
        return
    renamed = forms.renamed(module.text)
    for node in _mentioning(module, renamed):
        if isinstance(node, ast.Call):
            target = node.func
            name = terminal(target)
            if (name in forms.NAMES or (name in renamed and isinstance(target, ast.Name))) and not _on_self(target):
                yield node
        elif isinstance(node, ast.List) and len(node.elts) >= 2:
            words = [item.value if isinstance(item, ast.Constant) else "" for item in node.elts[:14]]
            if forms.engine_command([word if isinstance(word, str) else "" for word in words]) is not None:
                yield node


def _mentioning(module: Module, renamed: Iterable[str]) -> Iterator[ast.AST]:
    """Nodes of the top-level statements in which a constructing name occurs."""
    lines = module.lines_with(MENTIONED)
    for name in renamed:
        lines = sorted({*lines, *module.lines_with(re.compile(rf"\b{name}\s*\("))})
    index = 0
    for statement in module.tree.body:
        while index < len(lines) and lines[index] < statement.lineno:
            if any(decorator.lineno <= lines[index] for decorator in getattr(statement, "decorator_list", ())):
                break
            index += 1
        if index < len(lines) and lines[index] <= (statement.end_lineno or statement.lineno):
            yield from walk(statement)


def _on_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def sites_of(module: Module) -> list[tuple[int, int]]:
    """Line and column of every site that is there by name."""
    return [(node.lineno, module.place(node).column) for node in site_nodes(module)]
