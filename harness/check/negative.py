"""Whether the refusal that a test expects is one of configuration, or one that comes later."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from staticfire.harness.check.messages import clean

EXCEPTIONS: Final = {
    "ValueError",
    "ValidationError",
    "AssertionError",
    "NotImplementedError",
    "TypeError",
    "RuntimeError",
    "Exception",
    "ConfigError",
    "EngineError",
}
"""What building a configuration can raise."""
_LEAST: Final = 12
"""Letters of literal text that a pattern must share with a message that is known only in part."""
_LONGEST: Final = 2000
_QUANTIFIERS: Final = 3
"""Patterns come from the sources that are read: these bounds keep a hostile one from running for ever."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The `match` of a test's `pytest.raises`, held against the engine's messages.

    Attributes:
        match: The pattern, None where the test gives none.
        fits: Whether some message that refuses a configuration matches.
    """

    match: str | None
    fits: bool

    def why(self, exceptions: Sequence[str]) -> list[str]:
        """What keeps it open whether the configuration should have been refused."""
        if not self.match:
            return ["the test does not say which message it expects"]
        found = []
        if not {name.rsplit(".", 1)[-1] for name in exceptions} & EXCEPTIONS:
            found.append("the exception expected is none that a configuration raises")
        if not self.fits:
            found.append("no message of configuration that is known fits what the test expects")
        return found

    def met_by(self, message: str) -> bool:
        """Whether a refusal is the expected one; a pattern that does not compile is given the benefit of doubt."""
        return self.match is None or _search(self.match, message) is not False


def expectation(match: str | None, seen: Iterable[str], templates: Iterable[str]) -> Expectation:
    """Hold a pattern against messages.

    Args:
        match: The pattern of `pytest.raises`.
        seen: Messages that the engine refused other configurations with.
        templates: Messages out of the engine's source, with `{}` for values.
    """
    if not match:
        return Expectation(None, fits=False)
    fits = any(_search(match, message) for message in seen) or any(_could(match, text) for text in templates)
    return Expectation(match, fits)


def _search(pattern: str, message: str) -> bool | None:
    """Whether a pattern matches; None where that cannot be told, or not in bounded time."""
    bare = re.sub(r"\\.", "", pattern)
    if len(pattern) > _LONGEST or len(re.findall(r"[*+{]", bare)) > _QUANTIFIERS or re.search(r"\)[*+{]", bare):
        return True if pattern == re.escape(message) else None
    try:
        return any(re.search(pattern, text[:_LONGEST]) is not None for text in (message, clean(message)))
    except (re.error, RecursionError, OverflowError):
        return None


def _could(pattern: str, template: str) -> bool:
    """Whether a message made from a template can match: by the pattern itself, or by every literal part of it."""
    if _search(pattern, template):
        return True
    parts = literal_parts(pattern)
    if sum(map(len, parts)) < _LEAST:
        return False
    position = 0
    for part in parts:
        found = template.find(part, position)
        if found < 0:
            return False
        position = found + len(part)
    return True


def literal_parts(pattern: str) -> list[str]:
    """Literal runs of a regular expression, in order; an alternative or a group makes no promise, so none of it counts.

    Runs of fewer than three characters are left out.
    """
    if "|" in re.sub(r"\\.", "", pattern):
        return []
    text = re.sub(r"\\([^\w\s]|\s)", lambda found: f"\0{ord(found.group(1))}\0", pattern)
    text = re.sub(r"\\\w", "\1", text)
    text = re.sub(r"\[[^\]]*\][*+?]?|\(\?[^)]*\)|.[*?]|[.^$()+*?{}]", "\1", text)
    parts = (re.sub("\0(\\d+)\0", lambda found: chr(int(found.group(1))), part) for part in text.split("\1"))
    return [part for part in parts if len(part) >= 3]
