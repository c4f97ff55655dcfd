"""Whether an engine refused a configuration, and whether it did so for the reason that was expected. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

VLLM_WORDS: Final[Mapping[str, str]] = {"SF101": r"(?i)chunked prefill is required"}
"""Rule -> pattern of what vLLM (0.27.1 to 0.33.0) says for the same reason; the marker's `words` add to it."""


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
        words: Code -> pattern, for an engine that names no codes.
    """
    expected = ", ".join(rules)
    if refusal.codes:
        if set(refusal.codes) == set(rules):
            return None
        return f"refused by {', '.join(refusal.codes)}, the matrix says by {expected}: {refusal.message}"
    patterns = {**VLLM_WORDS, **words}
    unknown = [rule for rule in rules if rule not in patterns]
    if unknown:
        return (
            f"refused, but whether by {expected} cannot be told: give the engine's words for {', '.join(unknown)} in "
            f"the marker, such as words={{{unknown[0]!r}: 'a pattern'}}. It says: {refusal.message}"
        )
    missing = [rule for rule in rules if re.search(patterns[rule], refusal.message) is None]
    if missing:
        shown = ", ".join(f"{rule} ({patterns[rule]!r})" for rule in missing)
        return f"refused, but not in the words of {shown}. It says: {refusal.message}"
    return None
