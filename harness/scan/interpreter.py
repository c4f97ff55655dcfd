"""Run statements over known and unknown values: the whole of the interpreter."""

import ast
from collections.abc import Iterable
from typing import Any, Literal

from staticfire.harness.scan import pure
from staticfire.harness.scan.base import Guard, Unknown
from staticfire.harness.scan.expressions import Expressions, truth
from staticfire.harness.scan.modules import bound_names, names_in, target_names
from staticfire.harness.scan.names import is_fixture
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import Exhausted, Frame, Patch, Raises, Scope, Stopped
from staticfire.harness.scan.values import (
    Class,
    External,
    Function,
    Instance,
    Items,
    Keys,
    Made,
    Rest,
)

Signal = Literal["return", "break", "continue"] | None
_SKIPS = frozenset({"skip", "xfail", "importorskip", "exit"})


_ROUNDS = 100
"""Rounds of a `while` that are followed."""


class Interpreter(Expressions):
    """Statements; with the base classes, everything that evaluates."""

    def execute(self, body: Iterable[ast.stmt], frame: Frame) -> Signal:
        """Run statements, leaving out those that do not matter; how they ended, None at their end."""
        wanted = frame.slice.statements if frame.slice is not None else None
        for statement in body:
            if wanted is not None and id(statement) not in wanted:
                continue
            self.run.steps -= 1
            if self.run.steps < 0:
                raise Exhausted
            signal = self._statement(statement, frame)
            if signal is not None:
                return signal
        return None

    def _statement(self, statement: ast.stmt, frame: Frame) -> Signal:  # noqa: C901, PLR0911, PLR0912
        match statement:
            case ast.Assign():
                value = self.evaluate(statement.value, frame)
                for target in statement.targets:
                    self.assign(target, value, frame)
            case ast.AnnAssign():
                if statement.value is not None:
                    self.assign(statement.target, self.evaluate(statement.value, frame), frame)
            case ast.AugAssign():
                self._augment(statement, frame)
            case ast.Expr():
                self.evaluate(statement.value, frame)
            case ast.Return():
                frame.returns = self.evaluate(statement.value, frame) if statement.value is not None else None
                return "return"
            case ast.If():
                return self._if(statement, frame)
            case ast.For() | ast.AsyncFor():
                return self._for(statement, frame)
            case ast.While():
                return self._while(statement, frame)
            case ast.With() | ast.AsyncWith():
                return self._with(statement, frame)
            case ast.Try() | ast.TryStar():
                return self._try(statement, frame)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                frame.names[statement.name] = Function(
                    statement, frame.module, closure=self._closure(frame), name=statement.name
                )
            case ast.ClassDef():
                frame.names[statement.name] = Class(statement, frame.module, self._closure(frame))
            case ast.Import():
                for alias in statement.names:
                    self._import(alias, frame)
            case ast.ImportFrom():
                for alias in statement.names:
                    if alias.name != "*":
                        value = self.imported(frame.module, statement.level, statement.module or "", alias.name)
                        frame.names[alias.asname or alias.name] = value
            case ast.Delete():
                self._delete(statement, frame)
            case ast.Match():
                self._match(statement, frame)
            case ast.Raise():
                if self.run.joined:
                    return "return"
                raise Stopped
            case ast.Break():
                return "break"
            case ast.Continue():
                return "continue"
        return None

    @staticmethod
    def _closure(frame: Frame) -> Frame | None:
        return None if frame.names is frame.module.values else frame

    def _import(self, alias: ast.alias, frame: Frame) -> None:
        if alias.asname is not None:
            frame.names[alias.asname] = self.imported(frame.module, 0, alias.name, None)
            return
        top = alias.name.partition(".")[0]
        frame.names[top] = self.imported(frame.module, 0, top, None)

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target to a value."""
        match target:
            case ast.Name():
                frame.names[target.id] = value
            case ast.Tuple() | ast.List():
                self._unpack(target.elts, value, frame)
            case ast.Starred():
                self.assign(target.value, value, frame)
            case ast.Attribute():
                base = self.evaluate(target.value, frame)
                if isinstance(base, Instance):
                    base.attributes[target.attr] = value
                elif isinstance(base, Made):
                    base.keywords[target.attr] = value
                    base.keywords.where[target.attr] = frame.module.place(target)
                elif isinstance(base, External):
                    self.run.patched.append(frame.module.excerpt(target))
            case ast.Subscript():
                self._store(target, value, frame)

    def _unpack(self, targets: list[ast.expr], value: Any, frame: Frame) -> None:
        elements = pure.sequence(value)
        stars = [index for index, target in enumerate(targets) if isinstance(target, ast.Starred)]
        if elements is None or (len(elements) != len(targets) and not stars) or len(elements) < len(targets) - 1:
            why = value if isinstance(value, Unknown) else Unknown("unpacking", "")
            why = Unknown(why.reason, why.detail)
            for target in targets:
                self.assign(target, why, frame)
            return
        elements = list(elements)
        if stars:
            star, after = stars[0], len(targets) - stars[0] - 1
            middle = elements[star : len(elements) - after]
            elements = [*elements[:star], Items(middle), *elements[len(elements) - after :]]
        for target, element in zip(targets, elements, strict=True):
            self.assign(target, element, frame)

    def _store(self, target: ast.Subscript, value: Any, frame: Frame) -> None:
        base = self.evaluate(target.value, frame)
        key = self.evaluate(target.slice, frame) if not isinstance(target.slice, ast.Slice) else Unknown("subscript")
        if isinstance(base, External) and base.name == "os.environ":
            self.set_environment(key, value, frame.module.place(target))
        elif isinstance(base, dict):
            if isinstance(key, Unknown) or not pure.hashable(key):
                if isinstance(base, Keys):
                    base.rest = key if isinstance(key, Unknown) else Unknown("value", "key")
                return
            base[key] = value
            if isinstance(base, Keys):
                base.where[key] = frame.module.place(target)
        elif isinstance(base, list):
            if isinstance(key, int) and -len(base) <= key < len(base):
                base[key] = value
            elif isinstance(key, Unknown):
                base[:] = [Rest(key)]

    def _augment(self, statement: ast.AugAssign, frame: Frame) -> None:
        current = self.evaluate(_loaded(statement.target), frame)
        value = self.evaluate(statement.value, frame)
        if isinstance(statement.op, ast.Add) and isinstance(current, list):
            pure.extend(current, value)
            if len(current) > self.config.limits.elements:
                raise pure.TooLarge
            return
        if isinstance(statement.op, ast.BitOr) and isinstance(current, dict):
            pure.merge(current, value)
            return
        self.assign(statement.target, self.combine(type(statement.op), current, value, statement, frame), frame)

    @staticmethod
    def _delete(statement: ast.Delete, frame: Frame) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name):
                frame.names.pop(target.id, None)

    # Branches

    def _if(self, statement: ast.If, frame: Frame) -> Signal:
        decided = self.condition(statement.test, frame)
        if decided is not None:
            taken = statement.body if decided else statement.orelse
            return self.execute(taken, frame)
        text = frame.module.excerpt(statement.test)
        if self.run.joined:
            return self._join(statement, text, frame)
        wanted = frame.slice.statements if frame.slice is not None else None
        kind = _leaves(statement.body, value=not frame.is_test)
        if wanted is not None and any(id(inner) in wanted for inner in statement.body[:-1]):
            kind = None
        if kind is not None:
            if kind == "skip":
                self.guard("skip", text, statement, frame)
            return self.execute(statement.orelse, frame)
        if wanted is not None and not any(id(inner) in wanted for inner in (*statement.body, *statement.orelse)):
            return None
        way = self.choose(2, lambda way: text if way == 0 else f"not ({text})")
        return self.execute(statement.body if way == 0 else statement.orelse, frame)

    def guard(self, kind: Literal["skip", "marker"], text: str, node: ast.stmt, frame: Frame) -> None:
        """Note a condition under which the test is skipped from here on."""
        found = Guard(kind, text, frame.module.place(node), None)
        if found not in self.run.guards:
            self.run.guards.append(found)

    def _join(self, statement: ast.If, text: str, frame: Frame) -> Signal:
        """Read both branches of an `if`, and let names that differ stand for either value."""
        names = set(bound_names(statement))
        before = {name: pure.duplicate(frame.names[name]) for name in names if name in frame.names}
        outcomes: list[dict[str, Any]] = []
        for branch in (statement.body, statement.orelse):
            for name in names:
                frame.names.pop(name, None)
            frame.names.update({name: pure.duplicate(value) for name, value in before.items()})
            self.execute(branch, frame)
            outcomes.append({name: frame.names[name] for name in names if name in frame.names})
        for name in names:
            values = [outcome[name] for outcome in outcomes if name in outcome]
            if len(values) == 1 and name not in before:
                frame.names[name] = values[0]
            elif len(values) == 2:
                same = values[0] is values[1] or (type(values[0]) is type(values[1]) and values[0] == values[1])
                frame.names[name] = values[0] if same else Unknown("condition", text, tuple(values))
        return None

    def _match(self, statement: ast.Match, frame: Frame) -> None:
        self.evaluate(statement.subject, frame)
        for name in bound_names(statement):
            frame.names[name] = Unknown("condition", frame.module.excerpt(statement.subject))

    def _try(self, statement: ast.Try | ast.TryStar, frame: Frame) -> Signal:
        try:
            signal = self.execute(statement.body, frame)
        except Stopped:
            if not statement.handlers:
                raise
            signal = self.execute(statement.handlers[0].body, frame)
            return signal or self.execute(statement.finalbody, frame)
        for handler in statement.handlers:
            for name in names_in(handler.body):
                if name not in frame.names and self.run.joined:
                    self.execute(handler.body, frame)
                    break
        if signal is None:
            signal = self.execute(statement.orelse, frame)
        return self.execute(statement.finalbody, frame) or signal

    # Loops

    def _for(self, statement: ast.For | ast.AsyncFor, frame: Frame) -> Signal:
        source = self.evaluate(statement.iter, frame)
        elements = pure.sequence(source)
        limit = self.config.limits.iterations
        if elements is None or len(elements) > limit:
            why = source if isinstance(source, Unknown) else Unknown("loop", frame.module.excerpt(statement.iter))
            return self._open_loop(statement, statement.target, Unknown("loop", why.detail), frame)
        for element in list(elements):
            self.assign(statement.target, element, frame)
            signal = self.execute(statement.body, frame)
            if signal == "break":
                return None
            if signal == "return":
                return signal
        return self.execute(statement.orelse, frame)

    def _while(self, statement: ast.While, frame: Frame) -> Signal:
        for _ in range(_ROUNDS):
            decided = self.condition(statement.test, frame)
            if decided is False:
                return self.execute(statement.orelse, frame)
            if decided is None or not _progress(statement):
                return self._open_loop(statement, None, Unknown("loop", frame.module.excerpt(statement.test)), frame)
            signal = self.execute(statement.body, frame)
            if signal == "break":
                return None
            if signal == "return":
                return signal
        return self._open_loop(statement, None, Unknown("limit", "loop"), frame)

    def _open_loop(
        self, statement: ast.For | ast.AsyncFor | ast.While, target: ast.expr | None, why: Unknown, frame: Frame
    ) -> Signal:
        """Read a loop once whose rounds are not known, and forget what it changes."""
        if target is not None:
            for name in target_names(target):
                frame.names[name] = why
        signal = self.execute(statement.body, frame)
        for name in names_in(statement.body):
            value = frame.names.get(name)
            if isinstance(value, list):
                value.append(Rest(why))
            elif isinstance(value, Keys):
                value.rest = why
            elif name in frame.names and not isinstance(value, Function | Class | External | Instance):
                frame.names[name] = why
        return signal if signal == "return" and not frame.is_test and frame.returns is not None else None

    # Contexts

    def _with(self, statement: ast.With | ast.AsyncWith, frame: Frame) -> Signal:
        run = self.run
        saved = (len(run.raises), len(run.patched))
        environment: Keys | None = None
        for item in statement.items:
            before = Keys(run.environment)
            value = self.evaluate(item.context_expr, frame)
            if isinstance(value, Raises):
                run.raises.append(value.negative)
            elif isinstance(value, Patch):
                if value.text:
                    run.patched.append(value.text)
                if value.environment:
                    environment = environment if environment is not None else before
                    value = Unknown("object", "monkeypatch")
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value), frame)
        try:
            return self.execute(statement.body, frame)
        finally:
            del run.raises[saved[0] :]
            if any(isinstance(item.context_expr, ast.Call) for item in statement.items):
                self._unpatch(statement, saved[1])
            if environment is not None:
                run.environment = environment

    def _unpatch(self, statement: ast.With | ast.AsyncWith, count: int) -> None:
        names = {
            terminal(item.context_expr.func) for item in statement.items if isinstance(item.context_expr, ast.Call)
        }
        if names & {"patch", "object", "context"}:
            del self.run.patched[count:]

    def _entered(self, value: Any) -> Any:
        if isinstance(value, Instance):
            inner = self.class_attribute(value.cls, "__enter__")
            if isinstance(inner, Function):
                returned = self.call_function(self.bind(inner, value), [], Keys())
                return value if returned is None or isinstance(returned, Unknown) else returned
        return value

    # Fixtures

    def fixture_value(self, name: str) -> Any:
        """The value of a fixture for the test in progress, made once in a run."""
        run = self.run
        if name in run.fixtures:
            return run.fixtures[name]
        if name == "monkeypatch":
            return External("pytest.monkeypatch")
        if run.scope is None:
            return Unknown("fixture", name)
        found = self.fixture(name, run.scope)
        if found is None:
            return Unknown("fixture", name)
        run.fixtures[name] = Unknown("recursion", name)
        run.muted += 1
        saved, run.record = run.record, None
        try:
            run.fixtures[name] = self.run_fixture(found, name)
        finally:
            run.muted -= 1
            run.record = saved
        return run.fixtures[name]

    def run_fixture(self, found: Function, name: str) -> Any:
        """Run a fixture's function with the fixtures that it asks for."""
        scope = self.run.scope
        assert scope is not None
        spec = found.node.args
        keywords = Keys()
        for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if arg.arg in {"self", "cls"}:
                continue
            if arg.arg == "request":
                keywords["request"] = self._request(name)
            elif arg.arg == name:
                keywords[name] = Unknown("fixture", name)
            else:
                keywords[arg.arg] = self.fixture_value(arg.arg)
        return self.call_function(found, [], keywords)

    def _request(self, name: str) -> Any:
        if name not in self.run.requests:
            return Unknown("fixture", "request")
        return Made("request", Keys({"param": self.run.requests[name]}))


def fixture_scope(scope: Scope, function: Function) -> bool:
    """Whether a function is a fixture of the module in scope itself."""
    return function.module is scope.module and is_fixture(function)


def _loaded(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.copy_location(ast.Name(target.id, ast.Load()), target)
    return target


def _progress(statement: ast.While) -> bool:
    """Whether a loop can come to an end by what it does itself."""
    return not (
        isinstance(statement.test, ast.Constant) and not any(isinstance(n, ast.Break) for n in ast.walk(statement))
    )


def _leaves(body: list[ast.stmt], *, value: bool) -> str | None:
    """Whether a branch does nothing but leave: `skip` for a test that ends, `raise` for an error; None if it does more."""  # noqa: E501
    last = body[-1]
    if isinstance(last, ast.Raise):
        return "raise"
    if isinstance(last, ast.Continue):
        return "raise"
    if isinstance(last, ast.Return):
        plain = last.value is None or (isinstance(last.value, ast.Constant) and last.value.value is None)
        return "skip" if plain or not value else None
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and terminal(last.value.func) in _SKIPS:
        return "skip"
    return None


__all__ = ["Interpreter", "truth"]
