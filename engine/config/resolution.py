"""What `resolve` answers: values with provenance, rewrites, violations, and the configuration if accepted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staticfire.engine.config.engine_config import ResolvedConfig, Runtime

Source = Literal["typed", "default", "derived"]
Verdict = Literal["accepted", "refused", "not known"]


@dataclass(frozen=True, slots=True)
class Value:
    """A settled value and who settled it.

    Attributes:
        value: The value itself.
        source: `typed` by the user, a `default`, or `derived` from other values.
        because: One sentence for derived values: which facts led here.
        parents: `section.field` names of those facts, so that a chain can be followed to what was typed.
    """

    value: Any
    source: Source
    because: str | None = None
    parents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """A repair that re-resolution accepted: `set` these keywords, `drop` those, all together."""

    set: Mapping[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule.

    Attributes:
        code: Stable code, such as `SF101`.
        name: Readable name, such as `align-without-chunked-prefill`.
        message: One line with the values that clash.
        fields: `section.field` names the rule read.
        chain: How each of those came to its value, from the typed ones on, one sentence an entry.
    """

    code: str
    name: str
    message: str
    fields: tuple[str, ...]
    chain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A typed value that the engine replaces without refusing it."""

    code: str
    name: str
    field: str
    typed: Any
    value: Any
    message: str


@dataclass(frozen=True, slots=True)
class Resolution:
    """Everything known about one configuration.

    Attributes:
        values: `section.field` -> Value, for every field of the resolved sections.
        runtime: What the worker is expected to make of it; None where a violation leaves it undefined.
        violations: Every broken rule by which the engine refuses.
        limits: What is asked for and not computed here, where an engine is imitated that may have it; whether it
            accepts is then not known. The reference engine refuses by it, so for that engine they are violations.
        rewrites: Every typed value that was silently replaced.
        config: The frozen configuration; None unless accepted.
        arithmetic: The page arithmetic in lines of numbers, for people.
        notes: What a reader should know though nothing is refused, such as an estimate that was used.
        unknown: Run-time value, or `section.field` of a resolved one -> why it is not known; what `runtime` or `values`
            has in its place means nothing.
    """

    values: Mapping[str, Value]
    runtime: Runtime | None
    violations: tuple[Violation, ...]
    rewrites: tuple[Rewrite, ...]
    config: ResolvedConfig | None
    arithmetic: tuple[str, ...]
    notes: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[Violation, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the engine would start, as far as rules can tell."""
        return self.config is not None

    @property
    def verdict(self) -> Verdict:
        """What the engine says to it; not known where nothing refuses and something is not computed here."""
        if self.violations:
            return "refused"
        return "accepted" if self.accepted else "not known"
