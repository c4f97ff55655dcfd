"""Whether an engine refused a configuration, and whether it did so for the reason that was expected. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class RefusedError(Exception):
    """An engine without codes of its own refuses a configuration; the text is the engine's."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An engine's refusal.

    Attributes:
        message: All that it says.
        codes: The rules it names; empty for an engine that has none.
    """

    message: str
    codes: tuple[str, ...] = ()


def refusal_of(error: BaseException) -> Refusal | None:
    """Read an exception as a refusal; None where it is a failure of another kind."""
    if isinstance(error, RefusedError):
        return Refusal(str(error))
    faults = getattr(error, "faults", None)
    # by its shape: importing the engine's own class costs a quarter of a second
    if type(error).__name__ == "ConfigError" and isinstance(faults, tuple):
        return Refusal(str(error), tuple(sorted({fault.code or fault.type for fault in faults})))
    return None


def disagreement(refusal: Refusal, rules: Sequence[str], words: Mapping[str, str]) -> str | None:
    """What is wrong with a refusal; None where it is the one expected.

    Args:
        refusal: What the engine said.
        rules: Codes of all rules by which the configuration must be refused.
        words: Code -> pattern, for an engine that names no codes, in place of the words that the catalogue knows.
    """
    expected = ", ".join(rules)
    if refusal.codes:
        if set(refusal.codes) == set(rules):
            return None
        return f"refused by {', '.join(refusal.codes)}, the matrix says by {expected}: {refusal.message}"
    # late: a suite without negative cells need not read the catalogue
    from staticfire.harness.triage.words import rules_in  # noqa: PLC0415

    told = rules_in(refusal.message)
    missing = [
        rule for rule in rules if not (re.search(words[rule], refusal.message) if rule in words else rule in told)
    ]
    if missing:
        shown = ", ".join(f"{rule} ({words[rule]!r})" if rule in words else rule for rule in missing)
        more = [rule for rule in missing if rule not in words]
        hint = f"; if it means that, say so in the marker: words={{{more[0]!r}: 'a pattern'}}" if more else ""
        return f"refused, but not in the words of {shown}{hint}. It says: {refusal.message}"
    return None
