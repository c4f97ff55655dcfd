"""Failures out of the log of a job: pytest's own account of them, and what engines and agents say.

A log is read once, line by line: what is kept does not grow with what it says of nothing.
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from staticfire.harness.triage.base import Failure
from staticfire.harness.triage.causes import INFRASTRUCTURE, VAGUE, WRAPPERS, infrastructure, signs
from staticfire.harness.triage.commands import pytest_command
from staticfire.harness.triage.tracebacks import Raised, Reader
from staticfire.harness.triage.words import rule_of

MAX_TEXT: Final = 4_000
MAX_RAISED: Final = 10_000
"""Different things that engines raised."""
_CODES: Final = re.compile(r"\x1b_bk;t=\d+\x07|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_STAMP: Final = re.compile(
    r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?\s(?:\s*(?=[^\s]))?"
)
_PREFIX: Final = re.compile(
    r"^(?:(?:\([^()]{0,80}pid=\d+[^()]{0,80}\)|\[(?:rank|gw)\d+\]:?|[\w.-]{1,60} +\|) ?)*"
    r"(?:\s*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d:. -]+\[[^\]]{1,120}\] ?)?"
)
"""What workers, ray, containers and the engine's logger put before each line."""
_HEADER: Final = re.compile(r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{3,}$")
_RULE: Final = re.compile(r"^=+ .* =+$|^=+$")
_SUMMARY: Final = re.compile(r"^(?P<state>FAILED|ERROR) (?P<id>\S+?\.py(?:::.+?)?)(?: - (?P<message>.*))?$")
_CUT: Final = re.compile(r"(?:\.\.\.|…)$")


def read(text: str, report: str) -> tuple[Failure, ...]:
    """Every failure that a log tells of, each once."""
    return read_lines(text.splitlines(), report)


def read_lines(lines: Iterable[str], report: str) -> tuple[Failure, ...]:
    """Every failure that a log tells of, each once.

    Tests by pytest's summary, with the last thing that each raised; where that only says that an engine died, with what
    the engine said. Without tests, what engines and agents say. Signs of a failing machine always count.
    """
    log = _Log()
    for number, line in enumerate(lines, 1):
        for shown in line.rstrip("\r\n").split("\r"):
            log.line(number, shown)
    log.end()
    failures = list(_tests(log, report)) or _untold(log, report)
    return (*failures, *_machines(log, report, failures))


@dataclass(slots=True)
class _Section:
    """pytest's account of one test: what it raised, what was raised in what it captured, its last lines."""

    name: str = ""
    told: list[str] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=100))

    @property
    def raised(self) -> str:
        """The last thing it raised that is not about something else that failed."""
        return next((one for one in reversed(self.told) if not WRAPPERS.search(one)), (self.told or [""])[-1])


class _Log:
    """What is kept of a log."""

    def __init__(self) -> None:
        self.summary: list[tuple[int, re.Match[str]]] = []
        self.sections: dict[str, _Section] = {}
        self.engine: dict[str, int] = {}
        self.machines: dict[str, tuple[int, str]] = {}
        self._signs: set[str] = set()
        self._section = _Section()
        self._reader = Reader()

    def line(self, number: int, raw: str) -> None:
        """Take the next line."""
        line = (_CODES.sub("", raw) if "\x1b" in raw else raw).rstrip()
        if line[:1] in {"2", "["}:
            line = _STAMP.sub("", line)
        prefix = _PREFIX.match(line)
        cut = prefix.end() if prefix else 0
        self._told(self._reader.line(number, line[cut:], line[:cut]))
        if line.startswith(("FAILED ", "ERROR ")) and (found := _SUMMARY.match(line)):
            self.summary.append((number, found))
        header = _HEADER.match(line) if line.startswith("___") else None
        if header or (line.startswith("=") and _RULE.match(line)):
            self._close(header["name"] if header else "")
        elif self._section.name:
            self._section.lines.append(line[:MAX_TEXT])
        if len(self._signs) < len(INFRASTRUCTURE) and not line.startswith(("E ", ">")):
            self._sign(number, line)

    def end(self) -> None:
        """There are no more."""
        self._told(self._reader.end())
        self._close("")

    def root(self, section: _Section) -> str:
        """What an engine raised: in what a test captured, else anywhere; one that a rule explains before others."""
        for known in (section.captured, self.engine):
            if known:
                return next((message for message in known if rule_of(message)), next(iter(known)))
        return ""

    def _told(self, ended: Raised | None) -> None:
        if ended is None:
            return
        if ended.by_test and self._section.name:
            self._section.told.append(ended.message)
        elif not WRAPPERS.search(ended.message):
            self._section.captured.append(ended.message)
            if len(self.engine) < MAX_RAISED:
                self.engine.setdefault(ended.message, ended.line)

    def _close(self, following: str) -> None:
        self._told(self._reader.end())
        if self._section.name and self._section.told:
            self.sections.setdefault(self._section.name, self._section)
        self._section = _Section(following)

    def _sign(self, number: int, line: str) -> None:
        """Note the first line that tells of each kind of failing machine."""
        found = [name for name in signs(line) if name not in self._signs]
        if found:
            self._signs.update(found)
            self.machines[found[0]] = (number, line.strip()[:400])


def _tests(log: _Log, report: str) -> Iterator[Failure]:
    seen: set[str] = set()
    for number, found in log.summary:
        if found["id"] in seen:
            continue
        seen.add(found["id"])
        file, _, name = found["id"].partition("::")
        section = log.sections.get(name.replace("::", ".") or file, _Section())
        short, raised = found["message"] or "", section.raised
        vague = not short or _CUT.search(short) or VAGUE.match(short) or WRAPPERS.search(short)
        message = raised if raised and (vague or raised.startswith(short)) else short or raised
        if WRAPPERS.search(message) or not message:
            message = log.root(section) or message or f"{found['state'].lower()} without a message"
        text = "\n".join(section.lines)[-MAX_TEXT:]
        yield Failure(found["id"], message, text, report, number, file=file, rerun=pytest_command([found["id"]]))


def _untold(log: _Log, report: str) -> list[Failure]:
    """What engines raised where no test tells of it, each message once."""
    return [Failure(f"{report}:{number}", text, report=report, line=number) for text, number in log.engine.items()]


def _machines(log: _Log, report: str, known: list[Failure]) -> Iterator[Failure]:
    """Signs of a failing machine that no failure tells of, each kind once.

    Beside tests that failed for reasons of their own, only what ends a job counts: they may print anything.
    """
    told = {infrastructure(failure.message) for failure in known}
    for name, (number, line) in log.machines.items():
        if name not in told and (not known or name in {"lost agent", "disk full"}):
            yield Failure(f"{report}:{number}", line, report=report, line=number)
