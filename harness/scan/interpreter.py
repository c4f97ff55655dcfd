# ruff: noqa: SLF001 -- the table at the end names the handlers of the class above it
"""Run statements over known and unknown values: the whole of the interpreter."""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.budget import REASON, TooLarge
from staticfire.harness.scan.contexts import Contexts
from staticfire.harness.scan.modules import bound_names
from staticfire.harness.scan.state import (
    Exhausted,
    Frame,
    Signal,
    Stopped,
)


class Interpreter(Contexts):
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

    def _statement(self, statement: ast.stmt, frame: Frame) -> Signal:
        handler = _HANDLERS.get(type(statement))
        if handler is None:
            return None
        try:
            return handler(self, statement, frame)
        except TooLarge:
            for name in bound_names(statement):
                frame.names[name] = Unknown(REASON, name)
            return None

    def _assign(self, statement: ast.Assign, frame: Frame) -> None:
        value = self.evaluate(statement.value, frame)
        for target in statement.targets:
            self.assign(target, value, frame)

    def _annotated(self, statement: ast.AnnAssign, frame: Frame) -> None:
        if statement.value is not None:
            self.assign(statement.target, self.evaluate(statement.value, frame), frame)

    def _expression(self, statement: ast.Expr, frame: Frame) -> None:
        self.evaluate(statement.value, frame)

    def _return(self, statement: ast.Return, frame: Frame) -> Signal:
        frame.returns = self.evaluate(statement.value, frame) if statement.value is not None else None
        return "return"

    def _raise(self, _statement: ast.Raise, _frame: Frame) -> Signal:
        if self.run.joined:
            return "raise"
        raise Stopped

    def _break(self, _statement: ast.Break, _frame: Frame) -> Signal:
        return "break"

    def _continue(self, _statement: ast.Continue, _frame: Frame) -> Signal:
        return "continue"


_HANDLERS: Mapping[type[ast.stmt], Callable[[Interpreter, Any, Frame], Signal]] = {
    ast.Assign: Interpreter._assign,
    ast.AnnAssign: Interpreter._annotated,
    ast.AugAssign: Interpreter._augment,
    ast.Expr: Interpreter._expression,
    ast.Return: Interpreter._return,
    ast.If: Interpreter._if,
    ast.For: Interpreter._for,
    ast.AsyncFor: Interpreter._for,
    ast.While: Interpreter._while,
    ast.With: Interpreter._with,
    ast.AsyncWith: Interpreter._with,
    ast.Try: Interpreter._try,
    ast.TryStar: Interpreter._try,
    ast.FunctionDef: Interpreter._define,
    ast.AsyncFunctionDef: Interpreter._define,
    ast.ClassDef: Interpreter._define,
    ast.Import: Interpreter._import,
    ast.ImportFrom: Interpreter._import_from,
    ast.Delete: Interpreter._delete,
    ast.Match: Interpreter._match,
    ast.Raise: Interpreter._raise,
    ast.Break: Interpreter._break,
    ast.Continue: Interpreter._continue,
}
"""Statements that do something to values; the others (`assert`, `pass`, `global`) do nothing."""

__all__ = ["Interpreter"]
