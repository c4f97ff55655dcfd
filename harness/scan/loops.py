"""Follow loops for as long as their rounds are known."""

import ast

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.branches import Branches
from staticfire.harness.scan.modules import names_in, target_names
from staticfire.harness.scan.state import (
    Frame,
    Signal,
)
from staticfire.harness.scan.values import (
    Class,
    External,
    Function,
    Instance,
    Keys,
    Rest,
)

_ROUNDS = 100
"""Rounds of a `while` that are followed."""


class Loops(Branches):
    """`for` and `while`."""

    def _for(self, statement: ast.For | ast.AsyncFor, frame: Frame) -> Signal:
        source = self.evaluate(statement.iter, frame)
        elements = containers.sequence(source)
        limit = self.config.limits.iterations
        if elements is None or len(elements) > limit:
            why = source if isinstance(source, Unknown) else Unknown("loop", frame.module.excerpt(statement.iter))
            return self._open_loop(statement, statement.target, Unknown("loop", why.detail), frame)
        for element in list(elements):
            self.assign(statement.target, element, frame)
            signal = self.execute(statement.body, frame)
            if signal == "break":
                return None
            if signal in {"return", "raise"}:
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
            if signal in {"return", "raise"}:
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


def _progress(statement: ast.While) -> bool:
    """Whether a loop can come to an end by what it does itself."""
    return not (
        isinstance(statement.test, ast.Constant) and not any(isinstance(n, ast.Break) for n in ast.walk(statement))
    )
