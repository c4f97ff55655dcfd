"""A refused configuration, with every reason at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from staticfire.engine.errors import EngineError


@dataclass(frozen=True, slots=True)
class Fault:
    """One reason to refuse.

    Attributes:
        type: The rule's name for a broken rule; a pydantic error type such as `int_parsing` or
            `unknown-option` for a field error.
        field: What it is about: a keyword, `section.field`, or a `config.json` key.
        message: One line: what, the value, what is allowed, the nearest valid name.
        code: The rule's code; None for a field error.
        value: The offending value.
        chain: How the clashing values came about, for a broken rule.
    """

    type: str
    field: str
    message: str
    code: str | None = None
    value: Any = None
    chain: tuple[str, ...] = ()


class ConfigError(EngineError):
    """A configuration is refused; `faults` holds every reason, field errors before broken rules."""

    def __init__(self, faults: Iterable[Fault], title: str = "Configuration refused") -> None:
        self.faults = tuple(faults)
        lines = [f"{title}: {len(self.faults)} fault{'s' if len(self.faults) != 1 else ''}"]
        for fault in self.faults:
            lines.append(f"  {f'{fault.code} ' if fault.code else ''}{fault.type}: {fault.message}")
            lines.extend(f"    {link}" for link in fault.chain)
        super().__init__("\n".join(lines))

    def errors(self) -> list[dict[str, Any]]:
        """The faults in the shape of pydantic's `ValidationError.errors()`; a rule's `type` is its name."""
        return [
            {"type": f.type, "loc": tuple(f.field.split(".")), "msg": f.message, "input": f.value, "code": f.code}
            for f in self.faults
        ]

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[Fault, ...]]]:
        """Pickle by the faults, so that the error crosses process borders."""
        return type(self), (self.faults,)
