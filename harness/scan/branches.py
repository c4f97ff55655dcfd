"""Follow branches: decided ones, and both sides of those that reading cannot decide."""

import ast
from functools import partial
from typing import Any

from staticfire.harness.scan import containers, patterns
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.binding import Binding
from staticfire.harness.scan.modules import bound_names, names_in, pattern_names
from staticfire.harness.scan.operators import either
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import (
    Frame,
    Signal,
    Stopped,
)

_SKIPS = frozenset({"skip", "xfail", "importorskip", "exit"})


class Branches(Binding):
    """`if`, `match`, `try`."""

    def _if(self, statement: ast.If, frame: Frame) -> Signal:
        decided = self.condition(statement.test, frame)
        text = frame.module.excerpt(statement.test)
        if decided is not None:
            if decided and not self.run.joined and skips(statement.body[-1]):
                self.guard("skip", text, statement, frame, decided=True)
                return self.execute([*statement.body[:-1], *statement.orelse], frame)
            taken, left = (statement.body, statement.orelse) if decided else (statement.orelse, statement.body)
            if left and not self.run.joined and id(left) not in self.dead:
                why = f"not ({text})" if decided else text
                self.dead[id(left)] = (frame.module.shown, left[0].lineno, left[-1].end_lineno or 0, why)
            return self.execute(taken, frame)
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
        way = self.choose(2, partial(_side, text))
        return self.execute(statement.body if way == 0 else statement.orelse, frame)

    def _join(self, statement: ast.If, text: str, frame: Frame) -> Signal:
        """Read both branches of an `if`, and let names that differ stand for either value."""
        return self._join_blocks([statement.body, statement.orelse], set(bound_names(statement)), text, frame)

    def _join_blocks(self, blocks: list[list[ast.stmt]], names: set[str], text: str, frame: Frame) -> Signal:
        before = {name: containers.duplicate(frame.names[name]) for name in names if name in frame.names}
        outcomes: list[dict[str, Any]] = []
        returned: list[Any] = []
        for block in blocks:
            for name in names:
                frame.names.pop(name, None)
            frame.names.update({name: containers.duplicate(value) for name, value in before.items()})
            signal = self.execute(block, frame)
            if signal == "return":
                returned.append(frame.returns)
            elif signal != "raise":
                outcomes.append({name: frame.names[name] for name in names if name in frame.names})
        if not outcomes:
            frame.returns = either(returned[:-1], returned[-1], text) if returned else None
            return "return" if returned else "raise"
        frame.maybe.extend(returned)
        for name in names:
            values = [outcome[name] for outcome in outcomes if name in outcome]
            if values:
                frame.names[name] = either(values[:-1], values[-1], text)
            else:
                frame.names.pop(name, None)
        return None

    def _match(self, statement: ast.Match, frame: Frame) -> Signal:
        subject = self.evaluate(statement.subject, frame)
        text = frame.module.excerpt(statement.subject)
        open_: list[ast.match_case] = []
        for case in statement.cases:
            bound: dict[str, Any] = {}
            fits = patterns.matches(case.pattern, subject, lambda node: self.evaluate(node, frame), bound)
            if fits is False:
                continue
            frame.names.update(bound)
            if case.guard is not None:
                guard = self.condition(case.guard, frame)
                fits = False if guard is False else fits and guard
            if fits is False:
                continue
            if fits is None:
                described = f"{text} is {frame.module.excerpt(case.pattern)}"
                if self.run.joined:
                    open_.append(case)
                    continue
                if self.choose(2, partial(_side, described)):
                    continue
            if open_:
                open_.append(case)
                break
            return self.execute(case.body, frame)
        if not open_:
            return None
        for case in open_:
            frame.names.update((name, Unknown("condition", text)) for name in pattern_names(case.pattern))
        blocks = [case.body for case in open_]
        closed = isinstance(open_[-1].pattern, ast.MatchAs) and open_[-1].pattern.pattern is None
        names = {name for case in open_ for name in names_in(case.body)}
        return self._join_blocks(blocks if closed else [*blocks, []], names, text, frame)

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


def _side(text: str, way: int) -> str:
    return text if way == 0 else f"not ({text})"


def _leaves(body: list[ast.stmt], *, value: bool) -> str | None:
    """Whether a branch only leaves: `skip` if the test ends, `raise` if it fails; None if it does more."""
    last = body[-1]
    if isinstance(last, ast.Raise):
        return "raise"
    if isinstance(last, ast.Continue):
        return "raise"
    if isinstance(last, ast.Return):
        plain = last.value is None or (isinstance(last.value, ast.Constant) and last.value.value is None)
        return "skip" if plain or not value else None
    return "skip" if skips(last) else None


def skips(statement: ast.stmt) -> bool:
    """Whether a statement ends a test without a verdict."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and terminal(call.func) in _SKIPS
