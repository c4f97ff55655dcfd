"""Run functions that are read."""

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Location, Unknown
from staticfire.harness.scan.names import Names, decorated
from staticfire.harness.scan.operators import either
from staticfire.harness.scan.slices import Slice, slice_block
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.values import (
    Class,
    Function,
    Instance,
    Items,
    Keys,
    Member,
    Rest,
)


class Functions(Names):
    """Calls of functions that are read."""

    def call_function(
        self, function: Function, args: list[Any], keywords: Keys, given: Mapping[str, Location] | None = None
    ) -> Any:
        """Run a function that is read, and give what it returns (or yields, as a list)."""
        run = self.run
        node = function.node
        if run.depth >= self.config.limits.depth or run.stack.count(id(node)) >= 2:
            return Unknown("recursion", function.name)
        ranges = run.record.ranges if run.record is not None else None
        key = _memo_key(function, args, keywords, inside=ranges is not None)
        if key is not None and key in self._memo:
            value, _, seen = self._memo[key]
            if ranges is not None:
                ranges.extend(seen)
            return containers.duplicate(value)
        before, first = self._trace(), len(ranges or ())
        value = self._call_function(function, args, keywords, given)
        if key is not None and before == self._trace() and not function.name.startswith("__"):
            # The function is kept too: the key holds its address.
            self._memo[key] = (containers.duplicate(value), function, (ranges or [])[first:])
        return value

    def _trace(self) -> tuple[object, ...]:
        """What a function without effects leaves alone."""
        run = self.run
        counts = (len(run.taken), len(run.assumed), len(run.records), len(run.patched), len(run.guards))
        inner = len(run.record.constructs) if run.record is not None else -1
        return (*counts, inner, tuple((name, id(value)) for name, value in run.environment.items()))

    def _call_function(
        self, function: Function, args: list[Any], keywords: Keys, given: Mapping[str, Location] | None = None
    ) -> Any:
        run = self.run
        node = function.node
        parent = function.closure if isinstance(function.closure, Frame) else None
        frame = Frame(function.module, {}, parent, function, self._qualified(function))
        given = self._bind(function, args, keywords, frame, given or {})
        if run.record is not None:
            frame.given = given
            run.record.ranges.append((function.module.shown, node.lineno, node.end_lineno or node.lineno))
        run.depth += 1
        run.stack.append(id(node))
        try:
            if isinstance(node, ast.Lambda):
                return self.evaluate(node.body, frame)
            frame.slice = self.slice_of(function)
            frame.yields = []
            self.execute(node.body, frame)
        finally:
            run.depth -= 1
            run.stack.pop()
        return self._result(function, frame)

    def _result(self, function: Function, frame: Frame) -> Any:
        if not _is_generator(function):
            return either(frame.maybe, frame.returns)
        if suspends(function):
            return frame.yields[0] if frame.yields else Unknown("yield", function.name)
        return Items(frame.yields or ())

    @staticmethod
    def _qualified(function: Function) -> str:
        return f"{function.owner.name}.{function.name}" if function.owner is not None else function.name

    def slice_of(self, function: Function, *, value: bool = True) -> Slice:
        """What matters in a function, remembered on its node."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        key = f"_staticfire_slice_{value}"
        found = getattr(node, key, None)
        if found is None:
            keeps = node.name in {"__init__", "__post_init__", "setup_method", "setup_class", "setUp"}
            found = slice_block(node, self.reach(function.module), value=value, keeps=keeps)
            setattr(node, key, found)
        assert isinstance(found, Slice)
        return found

    def _bind(
        self, function: Function, args: list[Any], keywords: Keys, frame: Frame, given: Mapping[str, Location]
    ) -> dict[str, Location]:
        spec = function.node.args
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        places: dict[str, Location] = {}
        values = list(args)
        if function.bound is not None and names:
            frame.names[names.pop(0)] = function.bound
        elif (
            function.owner is not None
            and names
            and names[0] in {"self", "cls"}
            and not decorated(function, "staticmethod")
        ):
            frame.names[names.pop(0)] = values.pop(0) if values else Unknown("parameter", "self")
        open_rest: Unknown | None = None
        for name in names:
            if values and isinstance(values[0], Rest):
                open_rest = values[0].why
                break
            if not values:
                break
            frame.names[name] = values.pop(0)
            if name in given:
                places[name] = given[name]
        if spec.vararg is not None:
            frame.names[spec.vararg.arg] = tuple(values)
        extra = Keys()
        extra.rest = keywords.rest
        every = [*names, *(arg.arg for arg in spec.kwonlyargs)]
        for key, value in keywords.items():
            target = frame.names if key in every else extra
            target[key] = value
            place = keywords.where.get(key)
            if place is not None and key in every:
                places[key] = place
            elif place is not None:
                extra.where[key] = place
        if spec.kwarg is not None:
            frame.names[spec.kwarg.arg] = extra
        places.update(self._defaults(function, frame, every, open_rest or keywords.rest))
        return places

    def _defaults(
        self, function: Function, frame: Frame, every: list[str], rest: Unknown | None
    ) -> dict[str, Location]:
        spec = function.node.args
        positional = [arg.arg for arg in (*spec.posonlyargs, *spec.args)]
        defaults: dict[str, ast.expr] = dict(
            zip(positional[len(positional) - len(spec.defaults) :], spec.defaults, strict=True)
        )
        defaults.update(
            (arg.arg, node) for arg, node in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if node is not None
        )
        places = {}
        parent = (
            function.closure
            if isinstance(function.closure, Frame)
            else Frame(function.module, {}, qualified=function.name)
        )
        for name in every:
            if name in frame.names:
                continue
            if rest is not None:
                frame.names[name] = Unknown(rest.reason, rest.detail)
            elif name in defaults:
                frame.names[name] = self.evaluate(defaults[name], parent)
                places[name] = function.module.place(defaults[name])
            else:
                frame.names[name] = Unknown("parameter", name)
        return places

    def arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Any], Keys]:
        """Positional and keyword arguments of a call, splats merged in, with places."""
        args: list[Any] = []
        for arg in node.args:
            try:
                if isinstance(arg, ast.Starred):
                    containers.extend(args, self.evaluate(arg.value, frame))
                else:
                    args.append(self.evaluate(arg, frame))
            except RecursionError:
                args.append(Unknown("limit", frame.module.excerpt(arg)))
        keywords = Keys()
        for keyword in node.keywords:
            try:
                value = self.evaluate(keyword.value, frame)
            except RecursionError:
                value = Unknown("limit", frame.module.excerpt(keyword.value))
            if keyword.arg is None:
                containers.merge(keywords, value)
                continue
            keywords[keyword.arg] = value
            place = frame.given.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else None
            keywords.where[keyword.arg] = place or frame.module.place(keyword)
        return args, keywords


def suspends(function: Function | None) -> bool:
    """Whether what a function yields is used while the function stands at its `yield`: a fixture, or a context."""
    kinds = ("fixture", "contextmanager", "asynccontextmanager")
    return function is not None and any(decorated(function, kind) for kind in kinds)


def _memo_key(function: Function, args: list[Any], keywords: Keys, *, inside: bool) -> tuple[Any, ...] | None:
    """What the value of a call, and the places in it, depend on; None if that cannot be told.

    Args:
        function: What is called.
        args: Its positional arguments.
        keywords: Its keyword arguments.
        inside: Whether a wrapper is being looked into.
    """
    if isinstance(function.node, ast.Lambda) or keywords.rest is not None:
        return None
    if function.closure is not None and function.owner is None:
        return None
    values = (*args, *keywords.values())
    if not all(value is None or isinstance(value, str | int | float | bool | Member) for value in values):
        return None
    bound = function.bound
    if bound is not None and not isinstance(bound, Instance | Class):
        return None
    return (
        id(function.node), id(bound), tuple((type(value), value) for value in args),
        tuple((name, type(value), value) for name, value in keywords.items()), inside,
        tuple(keywords.where.items()) if function.node.args.kwarg is not None else (),
    )  # fmt: skip


def _is_generator(function: Function) -> bool:
    node = function.node
    if isinstance(node, ast.Lambda):
        return False
    found = getattr(node, "_staticfire_generator", None)
    if found is None:
        # Nearly every function is told by its text, without a walk through its tree.
        written = any("yield" in line for line in function.module.lines[node.lineno - 1 : node.end_lineno])
        found = written and any(isinstance(child, ast.Yield | ast.YieldFrom) for child in _own(node))
        node._staticfire_generator = found  # type: ignore[union-attr]  # noqa: SLF001
    return bool(found)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it."""
    pending: list[ast.AST] = list(ast.iter_child_nodes(node))
    while pending:
        child = pending.pop()
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending.extend(ast.iter_child_nodes(child))
