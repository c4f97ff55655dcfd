"""Failures out of the log of a job: pytest's own account of them, and what engines and agents say."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from staticfire.harness.triage.base import Failure
from staticfire.harness.triage.causes import INFRASTRUCTURE, WRAPPERS, infrastructure, rule_of

MAX_TEXT: Final = 4_000
_CODES: Final = re.compile(r"\x1b_bk;t=\d+\x07|\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_STAMP: Final = re.compile(r"^\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?\]?\s+(?=\S)")
_HEADER: Final = re.compile(r"^_{3,} (?:ERROR (?:at \w+ of|collecting) )?(?P<name>\S.*?) _{3,}$")
_RULE: Final = re.compile(r"^=+ .* =+$|^=+$")
_RAISED: Final = re.compile(r"^E\s{2,}(?P<kind>(?:\w+\.)*\w+): ?(?P<message>.*)$")
_SUMMARY: Final = re.compile(r"^(?P<state>FAILED|ERROR) (?P<id>\S+?\.py(?:::.+?)?)(?: - (?P<message>.*))?$")
_ENGINE: Final = re.compile(
    r"^(?:\([^)]*\)\s*)*(?:(?:ERROR|CRITICAL)\s[\d:. -]+\[[^\]]+\]\s*)?"
    r"(?P<message>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Refused): ?.*)$"
)
_KIND: Final = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception)$")
_CUT: Final = re.compile(r"(?:\.\.\.|…)$")


def read(text: str, report: str) -> tuple[Failure, ...]:
    """Every failure that a log tells of, each once.

    Tests by pytest's summary, with the last thing that each raised; where that only says that an engine died, with what
    the engine said. Without tests, what engines and agents say. Signs of a failing machine always count.
    """
    lines = [_STAMP.sub("", _CODES.sub("", line)).rstrip() for line in text.splitlines()]
    sections, engine = _sections(lines), _engine(lines)
    failures = list(_tests(lines, report, sections, engine))
    if not failures:
        failures = _untold(engine, report)
    return (*failures, *_machines(lines, report, failures))


def _tests(
    lines: Sequence[str], report: str, sections: dict[str, tuple[str, str]], engine: Sequence[tuple[int, str]]
) -> Iterator[Failure]:
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        found = _SUMMARY.match(line)
        if found is None or found["id"] in seen:
            continue
        seen.add(found["id"])
        file, _, name = found["id"].partition("::")
        raised, text = sections.get(name.replace("::", ".") or file, ("", ""))
        short = found["message"] or ""
        message = raised if raised and (not short or _CUT.search(short) or WRAPPERS.search(short)) else short or raised
        if WRAPPERS.search(message) or not message:
            message = _root(engine) or message or f"{found['state'].lower()} without a message"
        yield Failure(found["id"], message, text, report, number, file=file, rerun=f"pytest '{found['id']}'")


def _sections(lines: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Name of a test, as pytest heads its traceback -> the last thing it raised, and the traceback's end."""
    found: dict[str, tuple[str, str]] = {}
    name, body, raised = "", list[str](), ""
    for line in [*lines, "=" * 10]:
        header = _HEADER.match(line)
        if header or _RULE.match(line):
            if name and raised:
                found.setdefault(name, (raised, "\n".join(body)[-MAX_TEXT:]))
            name, body, raised = header["name"] if header else "", [], ""
            continue
        if name:
            body.append(line)
            told = _RAISED.match(line)
            if told:
                raised = f"{told['kind']}: {told['message']}"
    return found


def _engine(lines: Sequence[str]) -> list[tuple[int, str]]:
    """What engines raised, as they log it, without what only passes it on."""
    found = []
    for number, line in enumerate(lines, 1):
        told = _ENGINE.match(line)
        if told and not line.startswith("E ") and not WRAPPERS.search(told["message"]):
            found.append((number, told["message"]))
    return found


def _root(engine: Sequence[tuple[int, str]]) -> str:
    """The first thing that an engine raised, one that a rule explains before others."""
    ruled = next((message for _, message in engine if rule_of(message)), "")
    return ruled or next((message for _, message in engine), "")


def _untold(engine: Sequence[tuple[int, str]], report: str) -> list[Failure]:
    """What engines raised where no test tells of it, each message once."""
    first: dict[str, int] = {}
    for number, message in engine:
        first.setdefault(message, number)
    return [Failure(f"{report}:{number}", message, report=report, line=number) for message, number in first.items()]


def _machines(lines: Sequence[str], report: str, known: Sequence[Failure]) -> Iterator[Failure]:
    """Signs of a failing machine that no failure tells of, each kind once.

    Beside tests that failed for reasons of their own, only what ends a job counts: they may print anything.
    """
    told = {infrastructure(failure.message) for failure in known}
    wanted = [
        (pattern, name)
        for pattern, name in INFRASTRUCTURE
        if name not in told and (not known or name in {"lost agent", "disk full"})
    ]
    for number, line in enumerate(lines, 1):
        if line.startswith(("E ", ">")):
            continue
        found = [pair for pair in wanted if pair[0].search(line)]
        if found and infrastructure(line):
            wanted = [pair for pair in wanted if pair not in found]
            yield Failure(f"{report}:{number}", line.strip()[:400], report=report, line=number)
