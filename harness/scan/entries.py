"""What of a Python file runs by itself: tests, fixtures, the module; with the parameter sets that each has."""

import ast
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Guard, ScanConfig
from staticfire.harness.scan.interpreter import Interpreter
from staticfire.harness.scan.modules import Module
from staticfire.harness.scan.names import fixture_call, is_fixture
from staticfire.harness.scan.parameters import Axis, Parameters, decorators_of
from staticfire.harness.scan.slices import Slice, slice_block, terminal
from staticfire.harness.scan.state import Exhausted, Frame, Run, Scope, Stopped
from staticfire.harness.scan.values import Class, Function

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Entry:
    """Something that runs: a test, a fixture, a helper on its own, or the module."""

    name: str
    kind: str
    function: Function | None
    owners: tuple[Class, ...] = ()
    axes: list[Axis] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    slice: Slice | None = None


class Entries:
    """Finds entries.

    Args:
        interpreter: Evaluates what stands in decorators.
        config: The limits.
    """

    def __init__(self, interpreter: Interpreter, config: ScanConfig) -> None:
        self._interpreter = interpreter
        self._config = config
        self._parameters = Parameters(interpreter)

    def entries(self, module: Module, reach: frozenset[str]) -> Iterator[Entry]:
        """Everything in a file that runs and leads to a site."""
        led = self._interpreter.led(module)
        for node, owner_nodes in module.functions:
            index = bisect_left(led, node.lineno)
            if index == len(led) or led[index] > (node.end_lineno or 0):
                continue
            test = node.name.startswith("test")
            if not test and (node.name not in reach or not fixture_node(node)):
                continue
            owners = self.owners(module, owner_nodes)
            if owners is None:
                continue
            function = self.function(module, node, owners)
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
            yield Entry("", "module", None, slice=body)

    def owners(self, module: Module, nodes: tuple[ast.ClassDef, ...]) -> tuple[Class, ...] | None:
        """The classes of some nodes, outermost first; None if one of these names stands for something else."""
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

    def function(self, module: Module, node: FunctionNode, owners: tuple[Class, ...]) -> Function | None:
        """What a definition defines, as names lead to it, or on its own."""
        if owners:
            value = self._interpreter.members(owners[-1]).get(node.name)
        else:
            value = self._interpreter.module_name(module, node.name)
        if isinstance(value, Function) and value.node is node:
            return value
        return Function(node, module, owners[-1] if owners else None, name=node.name)

    def _test(self, module: Module, function: Function, owners: tuple[Class, ...], cut: Slice) -> Entry:
        assert not isinstance(function.node, ast.Lambda)
        decorators = decorators_of(self._interpreter, module, function.node, owners)
        with _budget(self._interpreter, self._config):
            axes = self._parameters.axes(decorators)
            guards = [*self._parameters.module_guards(module), *self._parameters.guards(decorators)]
        entry = Entry(qualified(function.node, owners), "test", function, owners, axes, guards, cut)
        entry.axes = [*self._fixture_axes(entry, module), *axes]
        return entry

    def _fixture_axes(self, entry: Entry, module: Module) -> list[Axis]:
        """Axes of the parametrized fixtures that matter to a test."""
        assert entry.function is not None
        scope = Scope(module, entry.owners)
        taken = {name for axis in entry.axes for name in axis.names}
        found: list[Axis] = []
        for name in self.needed(entry, scope):
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

    def needed(self, entry: Entry, scope: Scope, among: frozenset[str] | None = None) -> list[str]:
        """Arguments of a test whose values matter, and the fixtures that these need in turn."""
        assert entry.function is not None
        if among is None and entry.slice is not None:
            among = entry.slice.names
        names = [name for name in arguments(entry.function) if among is None or name in among]
        done: list[str] = []
        while names:
            name = names.pop(0)
            if name in done or name in {"request", "self", "monkeypatch"}:
                continue
            done.append(name)
            fixture = self._interpreter.fixture(name, scope)
            if fixture is not None:
                names.extend(arguments(fixture))
        return done

    def _fixtures(self, module: Module, function: Function, owners: tuple[Class, ...]) -> Iterator[Entry]:
        name = function.name
        axis = self._own_axis(function, name)
        qualified = f"{'.'.join([*(owner.name for owner in owners), name])}"
        cut = self._interpreter.slice_of(function)
        entry = Entry(qualified, "fixture", function, owners, slice=cut)
        scope = Scope(module, owners)
        needed = [other for other in self.needed(entry, scope) if other != name]
        for other in needed:
            fixture = self._interpreter.fixture(other, scope)
            if fixture is not None and (inner := self._own_axis(fixture, other)) is not None:
                entry.axes.append(inner)
        passed = self._indirect(module, name)
        if passed:
            for given in passed:
                yield Entry(qualified, "fixture", function, owners, [*entry.axes, given], slice=cut)
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
            owners = self.owners(module, owner_nodes)
            if owners is None:
                continue
            with _budget(self._interpreter, self._config):
                for axis in self._parameters.axes(decorators_of(self._interpreter, module, node, owners)):
                    if name in axis.indirect and axis not in found:
                        found.append(axis)
        return found


class _budget:  # noqa: N801
    """A fresh, joined run for what stands in decorators; what it cannot do stays undone."""

    def __init__(self, interpreter: Interpreter, config: ScanConfig) -> None:
        self._interpreter = interpreter
        self._steps = config.limits.steps * 4

    def __enter__(self) -> None:
        self._saved = self._interpreter.run
        self._interpreter.run = Run(joined=True, steps=self._steps, muted=1)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> bool:
        self._interpreter.budget.steps -= self._steps - max(self._interpreter.run.steps, 0)
        self._interpreter.run = self._saved
        return kind is not None and issubclass(kind, Exhausted | containers.TooLarge | Stopped)


def fixture_node(node: FunctionNode, argument: str = "") -> bool:
    """Whether a definition is a fixture by its decorators, with an argument of that name where one is given."""
    for item in node.decorator_list:
        target = item.func if isinstance(item, ast.Call) else item
        if terminal(target) == "fixture":
            return not argument or (isinstance(item, ast.Call) and any(kw.arg == argument for kw in item.keywords))
    return False


def _argument_names(spec: ast.arguments) -> list[str]:
    return [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]


def arguments(function: Function) -> list[str]:
    """Names of a function's arguments."""
    return _argument_names(function.node.args)


def qualified(node: FunctionNode, owners: tuple[Class, ...]) -> str:
    """A function's name behind those of its classes."""
    return ".".join([*(owner.name for owner in owners), node.name])
