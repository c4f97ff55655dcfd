"""What was raised, out of tracebacks as pytest and Python print them: whole messages, their later lines included."""

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MAX_LINES: Final = 40
MAX_MESSAGE: Final = 2_000
WRAPPED: Final = 40
"""A line at least so long may have been wrapped."""
_RAISED: Final = re.compile(r"^E {2,}(?P<kind>(?:\w+\.)*[A-Za-z_]\w*)(?::(?: (?P<message>.*))?)?$")
_PLAIN: Final = re.compile(
    r"^(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Refused|Interrupt|Exit))(?::(?: ?(?P<message>.*))?)?$"
)
_NO_MESSAGE: Final = re.compile(
    r"^(?:Traceback \(most recent|The above exception|During handling|  File \"|FAILED |ERROR |\s*$|\[rank\d|"
    r"[=_-]{3,}|[-=_!]+ .* [-=_!]+$)"
)
_MARKS: Final = re.compile(r"^\s*[~^]+\s*$")


class Raised(NamedTuple):
    """One exception.

    Attributes:
        line: Number of the line it begins in.
        message: All that it says.
        by_test: Whether pytest shows it, as what a test raised.
    """

    line: int
    message: str
    by_test: bool


class Reader:
    """Takes lines one by one, and gives each thing that was raised once its last line was seen.

    A bare `AssertionError` says nothing; the statement that raised it, one line up, then says what was asserted.
    """

    def __init__(self) -> None:
        self._number = 0
        self._lines: list[str] = []
        self._of_pytest = False
        self._above = ""
        self._prefix = ""
        self._wide = False

    def line(self, number: int, line: str, prefix: str = "") -> Raised | None:
        """Take the next line; give what ended before it.

        Args:
            number: Of the line.
            line: Without its logger's prefix.
            prefix: That prefix; a line that has another one is of another record.
        """
        if not self._lines and not line:
            return None
        if self._lines and self._goes_on(line, prefix):
            self._wide = len(line) >= WRAPPED
            if len(self._lines) < MAX_LINES:
                self._lines.append(line[1:].strip() if self._of_pytest else line.strip())
            return None
        ended = self.end()
        found = _RAISED.match(line) or (_PLAIN.match(line) if "r" in line or "Exit" in line else None)
        if found is not None:
            said = found["message"] or ""
            self._number, self._of_pytest = number, line.startswith("E ")
            self._prefix, self._wide = prefix, len(line) >= WRAPPED
            self._lines = [f"{found['kind']}: {said or self._above}" if said or self._above else found["kind"]]
        if not _MARKS.match(line):
            bare = line.removeprefix(">").strip()
            self._above = bare if bare.startswith("assert ") else ""
        return ended

    def end(self) -> Raised | None:
        """What was still being read."""
        if not self._lines:
            return None
        message = "\n".join(line for line in self._lines if line)[:MAX_MESSAGE]
        self._lines = []
        return Raised(self._number, message, self._of_pytest)

    def _goes_on(self, line: str, prefix: str) -> bool:
        """Whether a line is of the message: by its prefix, or where there is none, indented or wrapped."""
        if self._of_pytest:
            return line.startswith("E") and (len(line) == 1 or line[1] == " ")
        if _NO_MESSAGE.match(line) or _PLAIN.match(line):
            return False
        return prefix == self._prefix != "" or (not prefix and (line.startswith(" ") or self._wide))


def raised(lines: Iterable[str]) -> Iterator[str]:
    """Every message of a traceback, in order."""
    reader = Reader()
    for line in lines:
        ended = reader.line(0, line)
        if ended is not None:
            yield ended.message
    ended = reader.end()
    if ended is not None:
        yield ended.message
