"""The contract of a rule. A rule is one file that ends in `RULE = Rule(...)`, and one line in `registry`."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.release import REFERENCE, EngineRelease
from staticfire.engine.config.resolution import Rewrite


@dataclass(frozen=True, slots=True)
class Example:
    """The smallest configuration that shows the rule and nothing else.

    Attributes:
        model: Name in `rules.examples.MODELS`.
        typed: Keywords as typed.
        device: Name in `rules.examples.DEVICES`.
        fix: Keywords to change so that it is accepted (a value of None drops the keyword); empty for a rewrite,
            None where no keyword repairs it.
        release: Name in `release.RELEASES`.
    """

    model: str
    typed: Mapping[str, Any]
    device: str = "cpu"
    fix: Mapping[str, Any] | None = field(default_factory=dict)
    release: str = REFERENCE.name


@dataclass(frozen=True, slots=True)
class Broken:
    """A clash that a rule tells by itself, because no settled field stands for it.

    Attributes:
        field: The keyword it is about.
        message: One line.
        chain: How the keyword came to its value.
    """

    field: str
    message: str
    chain: tuple[str, ...]


def no_proposals(_: Draft) -> Iterable[Mapping[str, Any]]:
    """Propose nothing special."""
    return ()


def every_engine(_: EngineRelease) -> bool:
    """Hold for whatever engine is imitated."""
    return True


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that refuses.

    Attributes:
        code: Stable code; never reused.
        name: Reads after "allow": "allow align-without-chunked-prefill".
        summary: The rule in one line.
        why: What would go wrong.
        fix: What to change, in words.
        since: Version of Staticfire that brought it.
        fields: `section.field` names it reads; the chain follows them. Empty where it reads keywords alone.
        example: A configuration that breaks this rule only.
        check: The clash in one line with its values; None where the rule holds. May give several clashes.
        proposals: Changes that may repair it, beyond dropping and flipping what was typed (None drops a keyword);
            nobody believes them before re-resolution does.
        says: What engines print when they refuse by it: this one first, then vLLM, `{}` for a value. By these a log is
            read, so only words that mean nothing else; none of vLLM's where it refuses by nothing of the kind, or in
            words it has for many things.
        breaks_runtime: Whether run-time values mean nothing once it is broken (rules on them are then not asked).
        reads_runtime: Whether it reads the worker's values.
        reads_bounds: Whether it refuses by what the weights take at least, and so is asked where no more is known.
        holds: Which engines refuse by it, told by facts of their releases.
        limit: Whether it says only what this package lacks: the reference engine refuses by it, and whether another
            engine does is not known here.
        silences: Whether, for an engine that it leaves open, no other rule says anything either.
    """

    code: str
    name: str
    summary: str
    why: str
    fix: str
    since: str
    fields: tuple[str, ...]
    example: Example
    check: Callable[[Draft], str | Iterable[Broken] | None]
    proposals: Callable[[Draft], Iterable[Mapping[str, Any]]] = no_proposals
    says: tuple[str, ...] = ()
    breaks_runtime: bool = False
    reads_runtime: bool = False
    reads_bounds: bool = False
    holds: Callable[[EngineRelease], bool] = every_engine
    limit: bool = False
    silences: bool = False


@dataclass(frozen=True, slots=True)
class RewriteRule:
    """A typed value that is replaced, or has no effect, without being refused.

    Attributes are those of `Rule`; `find` gives what was replaced.
    """

    code: str
    name: str
    summary: str
    why: str
    fix: str
    since: str
    fields: tuple[str, ...]
    example: Example
    find: Callable[[Draft], Iterable[tuple[str, Any, Any, str]]]

    def rewrites(self, draft: Draft) -> Iterable[Rewrite]:
        """Every replacement in `draft`: (field, typed, value, message) each."""
        for where, typed, value, message in self.find(draft):
            yield Rewrite(self.code, self.name, where, typed, value, message)
