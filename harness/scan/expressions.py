# ruff: noqa: SLF001 -- the table at the end names the handlers of the class above it
"""Evaluate expressions over known and unknown values."""

import ast
from collections.abc import Callable
from typing import Any

from staticfire.harness.scan import containers, operators
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.budget import REASON
from staticfire.harness.scan.comprehensions import Comprehensions
from staticfire.harness.scan.state import (
    Exhausted,
    Frame,
)
from staticfire.harness.scan.values import (
    Function,
    is_known,
)


class Expressions(Comprehensions):
    """Evaluation of expressions; statements are in the derived classes."""

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression.

        Raises:
            Exhausted: The run has used up its steps.
        """
        run = self.run
        run.steps -= 1
        if run.steps < 0:
            raise Exhausted
        handler = _HANDLERS.get(type(node))
        if handler is None:
            return Unknown("expression", type(node).__name__)
        try:
            return handler(self, node, frame)
        except containers.TooLarge:
            return Unknown(REASON, frame.module.excerpt(node))

    def _boolop(self, node: ast.BoolOp, frame: Frame) -> Any:
        wanted = isinstance(node.op, ast.Or)
        open_value: Any = None
        value: Any = None
        for operand in node.values:
            value = self.evaluate(operand, frame)
            decided = operators.truth(value)
            if decided is wanted:
                if open_value is None:
                    return value
                return (
                    Unknown("condition", open_value.detail)
                    if not is_known(value) or not wanted
                    else self._either(open_value, value)
                )
            if decided is None:
                open_value = open_value or (value if isinstance(value, Unknown) else Unknown("condition", ""))
        return open_value if open_value is not None else value

    def _either(self, first: Unknown, second: Any) -> Unknown:
        candidates = (*first.candidates, second) if first.candidates else ()
        # `unknown or True` is true whatever the first is.
        return Unknown("condition", first.detail, (True,) if second is True and not candidates else candidates)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            decided = operators.truth(value)
            return Unknown("condition", frame.module.excerpt(node)) if decided is None else not decided
        if isinstance(value, int | float):
            try:
                return operators.UNARY[type(node.op)](value)
            except TypeError:
                return Unknown("error", "operator")
        return value if isinstance(value, Unknown) else Unknown("value", frame.module.excerpt(node))

    def _binop(self, node: ast.BinOp, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        right = self.evaluate(node.right, frame)
        return operators.combine(type(node.op), left, right, node, frame.module, self.config.limits.elements)

    def _compare(self, node: ast.Compare, frame: Frame) -> Any:
        left = self.evaluate(node.left, frame)
        outcome: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, frame)
            result = operators.compare(op, left, right)
            if result is False:
                return False
            if result is None:
                outcome = None
            left = right
        return Unknown("condition", frame.module.excerpt(node)) if outcome is None else outcome

    def _ifexp(self, node: ast.IfExp, frame: Frame) -> Any:
        decided = self.condition(node.test, frame)
        if decided is not None:
            return self.evaluate(node.body if decided else node.orelse, frame)
        text = frame.module.excerpt(node.test)
        if self.run.joined:
            candidates = (self.evaluate(node.body, frame), self.evaluate(node.orelse, frame))
            return Unknown("condition", text, candidates)
        way = self.choose(2, lambda way: text if way == 0 else f"not ({text})")
        return self.evaluate(node.body if way == 0 else node.orelse, frame)

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Any:
        return Function(node, frame.module, closure=frame)

    def _await(self, node: ast.Await, frame: Frame) -> Any:
        return self.evaluate(node.value, frame)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        while frame.comprehension and frame.parent is not None:
            frame = frame.parent  # `:=` binds in the function around a comprehension
        self.assign(node.target, value, frame)
        return value

    def _starred(self, node: ast.Starred, frame: Frame) -> Any:
        return self.evaluate(node.value, frame)

    def _yield(self, node: ast.Yield, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame) if node.value is not None else None
        if frame.yields is not None:
            frame.yields.append(value)
        return Unknown("yield", "")

    def _yield_from(self, node: ast.YieldFrom, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        if frame.yields is not None:
            containers.extend(frame.yields, value)
        return Unknown("yield", "")


_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any, Frame], Any]] = {
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
    ast.Subscript: Expressions._subscript,
    ast.Constant: Expressions._constant,
    ast.List: Expressions._list,
    ast.Tuple: Expressions._tuple,
    ast.Set: Expressions._set,
    ast.Dict: Expressions._dict,
    ast.JoinedStr: Expressions._joined,
    ast.BoolOp: Expressions._boolop,
    ast.UnaryOp: Expressions._unary,
    ast.BinOp: Expressions._binop,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._ifexp,
    ast.ListComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.DictComp: Expressions._dictcomp,
    ast.Lambda: Expressions._lambda,
    ast.Await: Expressions._await,
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._starred,
    ast.Yield: Expressions._yield,
    ast.YieldFrom: Expressions._yield_from,
    ast.Call: Expressions.call,
}
