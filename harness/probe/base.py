"""The contract of every probe: a configuration goes in, the engine's own word comes out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class Accepted:
    """The engine would start.

    Attributes:
        resolved: `section.field` -> value after the front end's defaults.
        runtime: What the worker will make of it, as far as it is known without a device.
    """

    resolved: Mapping[str, Any] = field(default_factory=dict)
    runtime: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The engine refuses.

    Attributes:
        kind: `field` for a keyword or value it does not know, `rule` for values that clash.
        message: All that it says.
        origin: Where in its code the refusal arises, as `file:line`, or the rule's name.
        rules: Codes of every broken rule, sorted; empty for an engine without codes.
    """

    kind: Literal["field", "rule"]
    message: str
    origin: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Crashed:
    """The engine gave no answer: it failed where it should have decided."""

    detail: str


Outcome = Accepted | Rejected | Crashed


class Probe(Protocol):
    """Something that answers for an engine."""

    def ask(self, model: str, config: Mapping[str, Any]) -> Outcome:
        """Judge one configuration.

        Args:
            model: A path, a name of `matrices/models/`, or a Hugging Face id in the local cache.
            config: Keywords as a user types them.
        """
        ...

    def field_fault(self, keyword: str, value: Any) -> str | None:
        """What is wrong with one keyword or its value, whatever else is typed; None if nothing."""
        ...

    def rule_name(self, code: str) -> str | None:
        """The readable name of a rule; None for a code that the engine does not have."""
        ...

    def rule_codes(self) -> tuple[str, ...]:
        """Every code of the engine's catalogue, sorted."""
        ...
