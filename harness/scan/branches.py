"""Follow branches: decided ones, and both sides of those that reading cannot decide."""

import ast
from typing import Any, Literal

from staticfire.harness.scan import containers
from staticfire.harness.scan.base import Guard, Unknown
from staticfire.harness.scan.binding import Binding
from staticfire.harness.scan.modules import bound_names, names_in
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
        before = {name: containers.duplicate(frame.names[name]) for name in names if name in frame.names}
        outcomes: list[dict[str, Any]] = []
        for branch in (statement.body, statement.orelse):
            for name in names:
                frame.names.pop(name, None)
            frame.names.update({name: containers.duplicate(value) for name, value in before.items()})
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
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and terminal(last.value.func) in _SKIPS:
        return "skip"
    return None
