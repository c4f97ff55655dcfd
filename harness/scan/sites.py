"""Calls that are sites: through wrappers that are read, or by signature where they are not."""

import ast
from typing import Any

from staticfire.harness.scan import containers, forms
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.objects import Objects
from staticfire.harness.scan.state import (
    Frame,
    Record,
    Stopped,
)
from staticfire.harness.scan.values import (
    Bound,
    Class,
    External,
    Function,
    Keys,
    Made,
)


class Sites(Objects):
    """Calls that construct an engine."""

    def site(self, node: ast.Call, signature: forms.Signature, frame: Frame, target: Any = None) -> Any:
        """A call that constructs an engine: record it, or add to the site whose wrapper is being looked into."""
        run = self.run
        target = target if target is not None else self.evaluate(node.func, frame)
        args, keywords = self.arguments(node, frame)
        while isinstance(target, Bound):
            merged = Keys(target.keywords)
            containers.merge(merged, keywords)
            target, args, keywords = target.function, [*target.args, *args], merged
        if run.record is not None:
            return self._within(signature, target, args, keywords, node, frame)
        record = Record(frame.module.place(node), signature.form, self.enclosing(node, frame), run.caller)
        self._note(record)
        given = {name: frame.module.place(arg) for name, arg in zip(self._parameters(target), node.args, strict=False)}
        run.record = record
        try:
            made: Any = Unknown("object", frame.module.excerpt(node.func))
            if isinstance(target, Function):
                made = self.call_function(target, args, keywords, given)
            elif isinstance(target, Class):
                made = self.instantiate(target, args, keywords, given)
            if not record.constructs:
                wrapped = signature.form in {"vllm_runner", "wrapper"} and not isinstance(target, External)
                missing = "wrapper" if wrapped else ""
                made = self.direct(signature, args, keywords, missing, node=node, frame=frame)
        except Stopped:
            if not record.constructs:
                self.direct(signature, args, keywords, "wrapper", node=node, frame=frame)
            raise
        finally:
            run.record = None
        # What a wrapper's object does later is of no interest: only its making is.
        return made if isinstance(made, Made) else Unknown("object", frame.module.excerpt(node.func))

    def _within(
        self, signature: forms.Signature, target: Any, args: list[Any], keywords: Keys, node: ast.Call, frame: Frame
    ) -> Any:
        assert self.run.record is not None
        before = len(self.run.record.constructs)
        made: Any = None
        if isinstance(target, Function):
            made = self.call_function(target, args, keywords)
        elif isinstance(target, Class):
            made = self.instantiate(target, args, keywords)
        if len(self.run.record.constructs) > before:
            return made
        return self.direct(signature, args, keywords, "", node=node, frame=frame)

    def _parameters(self, target: Any) -> list[str]:
        function = self.class_attribute(target, "__init__") if isinstance(target, Class) else target
        if not isinstance(function, Function):
            return []
        names = [arg.arg for arg in (*function.node.args.posonlyargs, *function.node.args.args)]
        return names[1:] if isinstance(target, Class) else names
