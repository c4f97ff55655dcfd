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
WRAPPED: Final = {"ValueError", "ValidationError", "AssertionError", "Exception", "ConfigError", "EngineError"}
"""What stands for one another once pydantic, or a probe, has told of it."""
_LEAST: Final = 12
"""Letters of literal text that a pattern must share with a message that is known only in part."""
_LONGEST: Final = 2000
_QUANTIFIERS: Final = 3
"""Patterns come from the sources that are read: these bounds keep a hostile one from running for ever."""


@dataclass(frozen=True, slots=True)
class Template:
    """A message that an engine's source can refuse with.

    Attributes:
        exception: Name of the class that is raised.
        text: The message, with `{}` for each value.
    """

    exception: str
    text: str


@dataclass(frozen=True, slots=True)
class Expectation:
    """The `pytest.raises` of a test, held against the engine's messages.

    Attributes:
        match: The pattern, None where the test gives none.
        raised: Whether a configuration can raise one of the exceptions.
        fits: Whether some message that refuses a configuration matches.
    """

    match: str | None
    raised: bool
    fits: bool

    def why(self) -> list[str]:
        """What keeps it open whether the configuration should have been refused."""
        if not self.match:
            return ["the test does not say which message it expects"]
        found = [] if self.raised else ["the exception expected is none that a configuration raises"]
        if not self.fits:
            found.append("no message of configuration that is known fits what the test expects")
        return found

    def met_by(self, message: str) -> bool:
        """Whether a refusal is the expected one; a pattern that does not compile is given the benefit of doubt."""
        return self.match is None or _search(self.match, message) is not False


def expectation(
    match: str | None, exceptions: Sequence[str], seen: Iterable[str], templates: Iterable[Template]
) -> Expectation:
    """Hold what a test expects against messages.

    Args:
        match: The pattern of `pytest.raises`.
        exceptions: Names of the exceptions that it takes.
        seen: Messages that the engine refused other configurations with.
        templates: Messages out of the engine's source.
    """
    names = {name.rsplit(".", 1)[-1] for name in exceptions}
    raised = bool(names & EXCEPTIONS)
    if not match:
        return Expectation(None, raised, fits=False)
    fits = bool(names & WRAPPED) and any(_search(match, message) for message in seen)
    fits = fits or any(_taken(names, one.exception) and _could(match, one.text) for one in templates)
    return Expectation(match, raised, fits)


def _taken(names: set[str], exception: str) -> bool:
    """Whether a `raises` of these names takes an exception; pydantic turns some into a `ValidationError`."""
    if exception in WRAPPED:
        return bool(names & WRAPPED)
    return exception in names or "Exception" in names


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
    parts = literal_parts(pattern)
    if sum(map(len, parts)) < _LEAST:
        return False
    if _search(pattern, template):
        return True
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
