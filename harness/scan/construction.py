"""Record the constructions that are sites, by their signatures and as words of commands."""

import ast
from typing import Any

from staticfire.harness.scan import containers, forms
from staticfire.harness.scan.base import Form, Unknown
from staticfire.harness.scan.containers import duplicate
from staticfire.harness.scan.functions import Functions
from staticfire.harness.scan.slices import MUTABLE
from staticfire.harness.scan.state import (
    Construct,
    Frame,
    Record,
)
from staticfire.harness.scan.values import (
    Items,
    Keys,
    Made,
    Rest,
)

_LARGE = 5_000
"""Values of which no more is kept than that they are too large."""


class Constructions(Functions):
    """Records of what constructs an engine."""

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
        return frame.module.enclosing(getattr(node, "lineno", 0))

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
        # What a mapping or a configuration becomes after the engine took it reaches that engine no more.
        taken = typed if signature.form in MUTABLE or containers.weight(typed, _LARGE) >= _LARGE else duplicate(typed)
        construct = Construct(taken, model_key=signature.model, missing=missing)
        if record is not None:
            construct.where = frame.module.place(node) if node is not None and frame is not None else record.where
            if signature.flags:
                self._commands(signature, typed, construct)
            else:
                record.constructs.append(construct)
        return Made(signature.form, typed, construct)

    def built(self, made: Made) -> None:
        """An engine is made of arguments: what surrounds this, and not the making of the arguments, is what counts."""
        construct = made.construct
        if not isinstance(construct, Construct) or construct.built:
            return
        construct.built = True
        construct.keywords = duplicate(construct.keywords)
        for record in self.run.records:
            if any(one is construct for one in record.constructs):
                record.negative = record.negative or (self.run.raises[-1] if self.run.raises else None)
                record.patched = record.patched or (self.run.patched[-1] if self.run.patched else None)

    def _commands(self, signature: forms.Signature, typed: Keys, base: Construct) -> None:
        assert self.run.record is not None
        lists: list[Any] = []
        for name in signature.flags:
            value = typed.get(name, Items())
            if name == "all_args":
                elements = containers.sequence(value)
                lists.extend(elements if elements is not None else [Unknown("value", name)])
            else:
                lists.append(value)
        environments = [typed.get(name) for name in signature.environments]
        if "all_envs" in signature.environments:
            environments = list(containers.sequence(typed.get("all_envs")) or [])
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
