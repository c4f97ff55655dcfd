"""Make objects of classes that are read."""

import ast
from collections.abc import Mapping
from typing import Any

from staticfire.harness.scan import forms
from staticfire.harness.scan.base import Location, Unknown
from staticfire.harness.scan.construction import Constructions
from staticfire.harness.scan.names import OPEN
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.state import (
    Frame,
)
from staticfire.harness.scan.values import Class, Function, Inherited, Instance, Keys, Member, Rest, unmixed


class Objects(Constructions):
    """Making objects."""

    def instantiate(
        self, cls: Class, args: list[Any], keywords: Keys, given: Mapping[str, Location] | None = None
    ) -> Any:
        """Make an object of a class that is read."""
        fields = self.fields(cls)
        instance = Instance(cls)
        if fields is not None:
            return self._fill(instance, fields, args, keywords)
        initial = self.class_attribute(cls, "__init__")
        if isinstance(initial, Function):
            if self.run.depth > self.config.limits.depth:
                return Unknown("recursion", cls.name)
            self.call_function(self.bind(initial, instance), args, keywords, given)
            return instance
        if self.is_enum(cls):
            return self._by_value(cls, args)
        foreign = self.foreign_base(cls)
        if foreign and foreign != "object":
            instance.attributes[OPEN] = Unknown("object", foreign)
            if foreign in forms.NAMES and self.run.record is not None:
                self.direct(forms.NAMES[foreign], args, keywords, "")
        return instance

    def _by_value(self, cls: Class, args: list[Any]) -> Any:
        """The member of an enumeration that has a value."""
        wanted = unmixed(args[0]) if len(args) == 1 else None
        if isinstance(wanted, str | int | float):
            for name in self.members(cls):
                member = self.class_attribute(cls, name)
                if isinstance(member, Member) and type(member.value) is type(wanted) and member.value == wanted:
                    return member
        return Unknown("call", cls.name)

    def inherited(self, initial: Inherited, args: list[Any], keywords: Keys) -> None:
        """`super().__init__(...)` where the base is not read: an engine's class, or a dataclass."""
        receiver = initial.receiver
        if not isinstance(receiver, Instance):
            return
        if not initial.base and (fields := self.fields(receiver.cls)) is not None:
            self._fill(receiver, fields, args, keywords)
        elif initial.base in forms.NAMES and self.run.record is not None:
            self.direct(forms.NAMES[initial.base], args, keywords, "")
        elif initial.base not in {"", "object"}:
            receiver.attributes.setdefault(OPEN, Unknown("object", initial.base))

    def _fill(self, instance: Instance, fields: list[Any], args: list[Any], keywords: Keys) -> Instance:
        values = list(args)
        for name, default, owner in fields:
            if values and isinstance(values[0], Rest):
                instance.attributes[name] = values[0].why
            elif values:
                instance.attributes[name] = values.pop(0)
            elif name in keywords:
                instance.attributes[name] = keywords[name]
            elif keywords.rest is not None:
                instance.attributes[name] = keywords.rest
            elif default is not None:
                instance.attributes[name] = self._field_default(default, owner)
            else:
                instance.attributes[name] = Unknown("attribute", name)
        return instance

    def _field_default(self, default: ast.expr, owner: Class) -> Any:
        frame = Frame(owner.module, self.members(owner), qualified=owner.name)
        if isinstance(default, ast.Call) and terminal(default.func) in {"field", "Field"}:
            for keyword in default.keywords:
                if keyword.arg == "default":
                    return self.evaluate(keyword.value, frame)
                if keyword.arg in {"default_factory", "factory"}:
                    factory = self.evaluate(keyword.value, frame)
                    return self.apply(factory, [], Keys(), default, frame)
            return Unknown("attribute", "field")
        return self.evaluate(default, frame)
