"""Record the constructions that are sites: through wrappers that are read, or by signature where they are not."""

import ast
from typing import Any

from staticfire.harness.scan import forms, pure
from staticfire.harness.scan.base import Form, Unknown
from staticfire.harness.scan.functions import Functions
from staticfire.harness.scan.state import Construct, Frame, Record, Stopped
from staticfire.harness.scan.values import (
    Bound,
    Class,
    External,
    Function,
    Items,
    Keys,
    Made,
    Rest,
)


class Constructions(Functions):
    """Calls, lists and commands that construct an engine."""

    def arguments(self, node: ast.Call, frame: Frame) -> tuple[list[Any], Keys]:
        """Positional and keyword arguments of a call."""
        raise NotImplementedError

    def site(self, node: ast.Call, signature: forms.Signature, frame: Frame, target: Any = None) -> Any:
        """A call that constructs an engine: record it, or add to the site whose wrapper is being looked into."""
        run = self.run
        target = target if target is not None else self.evaluate(node.func, frame)
        args, keywords = self.arguments(node, frame)
        if isinstance(target, Bound):
            merged = Keys(target.keywords)
            pure.merge(merged, keywords)
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

    def _note(self, record: Record) -> None:
        run = self.run
        record.environment = Keys(run.environment)
        record.negative = run.raises[-1] if run.raises else None
        record.patched = run.patched[-1] if run.patched else None
        record.guards = tuple(run.guards)
        record.assumed = tuple(run.assumed)
        if not run.muted:
            run.records.append(record)

    def enclosing(self, node: ast.AST, frame: Frame) -> str:
        """Qualified name of the function that a node stands in."""
        line = getattr(node, "lineno", 0)
        best = ""
        for function, owners in frame.module.functions:
            if function.lineno <= line <= (function.end_lineno or 0):
                best = ".".join([*(owner.name for owner in owners), function.name])
        return best

    def direct(
        self,
        signature: forms.Signature,
        args: list[Any],
        keywords: Keys,
        missing: str,
        *,
        node: ast.Call | None = None,
        frame: Frame | None = None,
    ) -> Made:
        """Read a construction by its signature alone."""
        typed = Keys(keywords)
        for position, (name, value) in enumerate(zip(signature.positional, args, strict=False)):
            if isinstance(value, Rest):
                missing = missing or value.why.reason
                break
            typed[name] = value
            if node is not None and frame is not None and position < len(node.args):
                arg = node.args[position]
                given = frame.given.get(arg.id) if isinstance(arg, ast.Name) else None
                typed.where[name] = given or frame.module.place(arg)
        for name in signature.ignored:
            typed.pop(name, None)
        if typed.rest is not None:
            missing = missing or typed.rest.reason
        if signature.model == "model" and "model_name" in typed and "model" not in typed:
            typed["model"] = typed.pop("model_name")
            if "model_name" in typed.where:
                typed.where["model"] = typed.where.pop("model_name")
        record = self.run.record
        construct = Construct(typed, model_key=signature.model, missing=missing)
        if record is not None:
            construct.where = frame.module.place(node) if node is not None and frame is not None else record.where
            if signature.flags:
                self._commands(signature, typed, construct)
            else:
                record.constructs.append(construct)
        return Made(signature.form, typed, construct)

    def _commands(self, signature: forms.Signature, typed: Keys, base: Construct) -> None:
        assert self.run.record is not None
        lists: list[Any] = []
        for name in signature.flags:
            value = typed.get(name, Items())
            if name == "all_args":
                elements = pure.sequence(value)
                lists.extend(elements if elements is not None else [Unknown("value", name)])
            else:
                lists.append(value)
        environments = [typed.get(name) for name in signature.environments]
        if "all_envs" in signature.environments:
            environments = list(pure.sequence(typed.get("all_envs")) or [])
        for index, value in enumerate(lists):
            words = Items(value) if isinstance(value, list | tuple) else Items([Rest(_why(value))])
            environment = environments[index] if index < len(environments) else None
            keywords = Keys({"model": typed["model"]} if "model" in typed else {})
            keywords.inherit(typed)
            construct = Construct(keywords, words, 0, base.where, missing=base.missing)
            if isinstance(environment, dict):
                construct.environment = Keys(environment)
            if (overrides := typed.get("override_hf_configs")) is not None:
                keywords["hf_overrides"] = overrides
            self.run.record.constructs.append(construct)

    def command(self, items: Items, node: ast.expr, frame: Frame) -> None:
        """A list that starts with the words of an engine's command."""
        start = forms.engine_command([item if isinstance(item, str) else "" for item in items[:14]])
        if start is None:
            return
        construct = Construct(Keys(), items, start, frame.module.place(node))
        items.command = construct
        run = self.run
        if run.record is not None:
            run.record.constructs.append(construct)
            return
        form: Form = "command"
        record = Record(frame.module.place(node), form, self.enclosing(node, frame), run.caller, [construct])
        self._note(record)


def _why(value: Any) -> Unknown:
    return value if isinstance(value, Unknown) else Unknown("value", type(value).__name__)
