"""Whether a value is an instance of a class, as far as reading alone can tell."""

import builtins
import collections.abc
from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.harness.scan import forms
from staticfire.harness.scan.base import Unknown
from staticfire.harness.scan.names import OPEN
from staticfire.harness.scan.slices import terminal
from staticfire.harness.scan.values import Class, External, Instance, Joined, Made, Member, is_known

_ABSTRACT = {name: getattr(collections.abc, name) for name in collections.abc.__all__}
_TYPES: Mapping[str, type] = {
    **{f"builtins.{name}": kind for name, kind in vars(builtins).items() if isinstance(kind, type)},
    **{f"{module}.{name}": kind for module in ("collections.abc", "typing") for name, kind in _ABSTRACT.items()},
}
"""Dotted name of a class -> the class, of those that plain values can be instances of."""


def is_a(value: Any, kind: Any) -> bool | None:
    """Whether a value is an instance of a class, or of one of a tuple of classes; None where that is not known."""
    if isinstance(kind, tuple):
        return _any(is_a(value, one) for one in kind)
    if not isinstance(kind, External | Class):
        return None
    if isinstance(value, Unknown):
        outcomes = {is_a(candidate, kind) for candidate in value.candidates}
        return outcomes.pop() if len(outcomes) == 1 else None
    if isinstance(value, Instance | Member):
        return _is_read(value, kind)
    if isinstance(kind, Class):
        # A member of `class Name(str, Enum)` is held as the text that it is.
        plain = any(f"builtins.{terminal(base)}" in _TYPES for base in kind.node.bases)
        return False if not plain and (is_known(value) or isinstance(value, Joined)) else None
    if is_known(value) or isinstance(value, Joined):
        return isinstance("" if isinstance(value, Joined) else value, _TYPES.get(kind.name, ()))
    return _is_foreign(value, kind)


def _any(outcomes: Iterable[bool | None]) -> bool | None:
    found = set(outcomes)
    return True if True in found else None if None in found else False


def _is_read(value: Instance | Member, kind: External | Class) -> bool | None:
    if value.cls is kind:
        return True
    if isinstance(value, Member) or OPEN in value.attributes or isinstance(kind, Class):
        return None
    return kind.name == "builtins.object" if kind.name.startswith("builtins.") else None


def _is_foreign(value: Any, kind: External) -> bool | None:
    if isinstance(value, Made):
        return True if configuration_class(kind) and value.name == kind.last else None
    if not isinstance(value, External):
        return None
    owner, _, member = value.name.rpartition(".")
    cls = External(owner)
    if not (configuration_class(cls) and member.isupper()):
        return None
    if cls.last == kind.last:
        return True
    # A member of an enumeration, which is no configuration of the engine.
    return False if configuration_class(kind) and kind.last.endswith(("Config", "Args")) else None


def configuration_class(target: External) -> bool:
    """Whether a foreign name is one of the engine's configuration classes."""
    last = target.last
    return target.name.partition(".")[0] in forms.ENGINE_PACKAGES and last[:1].isupper() and not last.isupper()


__all__ = ["configuration_class", "is_a"]
