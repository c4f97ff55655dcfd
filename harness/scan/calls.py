"""Evaluate calls."""

import ast
from dataclasses import replace
from typing import Any

from staticfire.harness.scan import containers, forms, methods
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.foreign import Foreign
from staticfire.harness.scan.slices import BUILDS, on_self, terminal
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.values import Bound, Class, External, Function, Inherited, Instance, Keys, Made, Method


class Calls(Foreign):
    """Evaluation of calls, whatever is called."""

    def call(self, node: ast.Call, frame: Frame) -> Any:
        """The value of a call."""
        name = terminal(node.func)
        if name in forms.NAMES and not on_self(node.func):
            return self.site(node, forms.NAMES[name], frame)
        special = self.special(name, node, frame)
        if special is not NotImplemented:
            return special
        target = self.evaluate(node.func, frame)
        if isinstance(target, Class | Bound | External) and name in self.reach(frame.module):
            signature = self._constructor(target, name, frame)
            if signature is not None:
                return self.site(node, signature, frame, target)
        args, keywords = self.arguments(node, frame)
        return self.apply(target, args, keywords, node, frame)

    def _constructor(self, target: Any, name: str, frame: Frame) -> forms.Signature | None:
        """How to read a call of something that constructs an engine under another name; None if it does not."""
        inner = target
        while isinstance(inner, Bound):
            inner = inner.function
        own = forms.renamed(frame.module.text).get(name) if isinstance(target, External | Class) else None
        if own is not None:
            return forms.NAMES[own]
        if isinstance(inner, External):
            # Neither the source's own name nor the constructor's: what was made of it here.
            return replace(forms.NAMES[inner.last], form="wrapper") if inner.last in forms.NAMES else None
        return forms.Signature("wrapper") if isinstance(inner, Class) and self.run.record is None else None

    def apply(self, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        """Call a value."""
        if isinstance(target, Function):
            return self.call_function(target, args, keywords)
        if isinstance(target, Class):
            return self.instantiate(target, args, keywords)
        if isinstance(target, External):
            for arg in args if target.last in BUILDS else ():
                if isinstance(arg, Made):
                    self.built(arg)
            return self.external(target, args, keywords, node, frame)
        if isinstance(target, Method):
            return self._method(target, args, keywords, frame, node)
        return self._apply_other(target, args, keywords, node, frame)

    def _apply_other(self, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame) -> Any:
        if isinstance(target, Bound):
            merged = Keys(target.keywords)
            containers.merge(merged, keywords)
            return self.apply(target.function, [*target.args, *args], merged, node, frame)
        if isinstance(target, Inherited):
            return self.inherited(target, args, keywords)
        if isinstance(target, Instance):
            inner = self.class_attribute(target.cls, "__call__")
            if isinstance(inner, Function):
                return self.call_function(self.bind(inner, target), args, keywords)
        decided_elsewhere = isinstance(target, Unknown) and target.reason in {"environment", "platform"}
        return Unknown(target.reason if decided_elsewhere else "call", frame.module.excerpt(node))

    def _method(self, method: Method, args: list[Any], keywords: Keys, frame: Frame, node: ast.Call) -> Any:
        receiver = method.receiver
        if isinstance(receiver, Made):
            self.built(receiver)
        if isinstance(receiver, Keys) and method.name in {"setdefault", "update"}:
            for key in [args[0]] if method.name == "setdefault" and args and containers.hashable(args[0]) else []:
                if key not in receiver:
                    receiver.where[key] = frame.module.place(node)
        value = methods.method(receiver, method.name, args, keywords, self.config.limits)
        if isinstance(value, Unknown) and value.reason == "call":
            return Unknown("call", frame.module.excerpt(node))
        return value
