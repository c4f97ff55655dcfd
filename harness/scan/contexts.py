"""Enter contexts, and make what fixtures give."""

import ast
from typing import Any

from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.functions import suspends
from staticfire.harness.scan.loops import Loops
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import (
    Frame,
    Patch,
    Raises,
    Signal,
)
from staticfire.harness.scan.values import (
    External,
    Function,
    Instance,
    Keys,
    Made,
)


class Contexts(Loops):
    """`with` statements and fixtures."""

    def _with(self, statement: ast.With | ast.AsyncWith, frame: Frame) -> Signal:
        run = self.run
        raises, patched, yields = len(run.raises), len(run.patched), len(frame.yields or ())
        before = Keys(run.environment)
        restored = False
        for item in statement.items:
            value = self.evaluate(item.context_expr, frame)
            if isinstance(value, Raises):
                run.raises.append(value.negative)
            elif isinstance(value, Patch):
                if value.text:
                    run.patched.append(value.text)
                if value.environment:
                    restored = True
                    value = Unknown("object", "monkeypatch")
            restored = restored or run.held
            run.held = False
            if item.optional_vars is not None:
                self.assign(item.optional_vars, self._entered(value), frame)
        try:
            return self.execute(statement.body, frame)
        finally:
            if len(frame.yields or ()) > yields and suspends(frame.function):
                run.held = restored
            else:
                del run.raises[raises:]
                if any(isinstance(item.context_expr, ast.Call) for item in statement.items):
                    self._unpatch(statement, patched)
                if restored:
                    run.environment = before

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
            run.held = False  # until the test ends
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
                outer = self.fixture(name, scope, found)
                keywords[name] = Unknown("fixture", name) if outer is None else self.run_fixture(outer, name)
            else:
                keywords[arg.arg] = self.fixture_value(arg.arg)
        return self.call_function(found, [], keywords)

    def _request(self, name: str) -> Any:
        if name not in self.run.requests:
            return Unknown("fixture", "request")
        return Made("request", Keys({"param": self.run.requests[name]}))
