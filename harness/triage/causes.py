"""What a message is about: a rule, a machine or a network, or else its own words without what varies."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from staticfire.harness.check.messages import clean, normalise
from staticfire.harness.triage.words import rule_of

WRAPPERS: Final = re.compile(
    r"Engine core initialization failed|See root cause above|EngineDeadError|Failed core proc|"
    r"EngineCore encountered an issue|WorkerProc initialization failed|RayTaskError|"
    r"child process .*(?:died|exited)|Engine process failed to start",
    re.IGNORECASE,
)
"""What says that something else failed: its cause stands elsewhere in the log."""

VAGUE: Final = re.compile(r"(?:\w+\.)*\w+(?:Error|Exception):?\s*$|failed on (?:setup|teardown) with ")
"""The name of an exception alone, or pytest's account of a fixture: what was raised says more."""
_COUNTED: Final = re.compile(
    r"^(?:[\w.]*\.)?(?:ValidationError|ConfigError): (?=\d+ validation errors? for|Configuration refused: \d+ fault)"
)
"""Names of exceptions whose first line only counts; what they refuse follows."""
_VARIES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\bworker '\w+' crashed while running '.*'"), "a worker crashed while running a test"),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"(?<![\w.])(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,}\b"), "<id>"),
    (re.compile(r"(?<![A-Za-z])(gw|rank|worker|[DTPE]P)_?\d+\b", re.IGNORECASE), r"\1<n>"),
    (re.compile(r"(?<![\w.])\d[\d_,]*(?:\.\d+)?(?= ?(?:[mun]?s|[KMGT]i?B)\b)"), "<n>"),
)
"""What differs from worker to worker and from run to run, besides numbers, paths and addresses."""
_EXCEPTION: Final = re.compile(r"^(?:[\w.]*\b)?\w+(?:Error|Exception|Refused): ")
_ASSERTED: Final = re.compile(r"\s*(?:E\s+)?(?:AssertionError\b|assert\b|Failed: )")

INFRASTRUCTURE: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"agent (?:was )?lost|agent lost|\bexit(?:ed with)? status -1\b|agent_stop|agent is stopping", "lost agent"),
        (r"No space left on device|disk quota exceeded", "disk full"),
        (r"Temporary failure in name resolution|Could not resolve host|Name or service not known", "name resolution"),
        (
            (
                r"Connection (?:reset by peer|timed out)|Read timed out|ConnectTimeout|RemoteDisconnected"
                r"|fatal: unable to access|TLS handshake timeout|Max retries exceeded"
            ),
            "network",
        ),
        (
            r"\b(?:429 Client Error|50[234] Server Error|HTTP(?: status)?(?: code)?:? (?:429|50[234]))\b",
            "remote service",
        ),
        (r"toomanyrequests|Error response from daemon|failed to pull image|manifest unknown", "container image"),
        (
            (
                r"no CUDA-capable device|CUDA driver initialization failed|CUDA unknown error|"
                r"\bXid\b|ECC error|NVML: |Unable to determine the device handle"
            ),
            "device",
        ),
        (r"Free memory on device .* is less than desired", "device memory held by another process"),
    )
)
"""What is said when a machine or a network fails. A test that is red for its own reasons says none of these."""
_HINTS: Final = (
    *("agent", "status -1", "no space left", "quota", "resol", "name or service", "connection ", "timed out"),
    *("connecttimeout", "remotedisconnected", "unable to access", "handshake", "max retries", "429", "502", "503"),
    *("504", "toomanyrequests", "daemon", "pull image", "manifest unknown", "cuda", "xid", "ecc error", "nvml"),
    *("device handle", "free memory"),
)
"""Of which each of them holds at least one; to look for these first makes long logs cheap."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What failures may share.

    Attributes:
        key: Equal for equal causes.
        infrastructure: Name of what failed besides the product; empty where it is the product.
        rule: Code; empty where none is known.
    """

    key: str
    infrastructure: str = ""
    rule: str = ""


def cause(message: str, rule: str = "") -> Cause:
    """The cause that a message tells of.

    Args:
        message: Of a failure.
        rule: Code of a rule that the report names.
    """
    code = rule or rule_of(message)
    if code:
        return Cause(f"rule:{code}", rule=code)
    name = infrastructure(message)
    if name:
        return Cause(f"infrastructure:{name}", infrastructure=name)
    words = signature(message)
    return Cause(f"words:{hashlib.sha256(words.encode()).hexdigest()[:16]}")


def infrastructure(message: str) -> str:
    """What failed besides the product; empty where nothing says so, and for what a test asserts of such words."""
    return next(iter(signs(message)), "")


def signs(line: str) -> list[str]:
    """Names of everything besides the product that a line says has failed; empty for what a test asserts."""
    lower = line.lower()
    if not any(hint in lower for hint in _HINTS) or _ASSERTED.match(line):
        return []
    return [name for pattern, name in INFRASTRUCTURE if pattern.search(line)]


def signature(message: str) -> str:
    """The first line of a message without what varies from one test to the next."""
    words = headline(message)
    for pattern, mark in _VARIES:
        words = pattern.sub(mark, words)
    return normalise(words)[:300]


def headline(message: str) -> str:
    """The first line of a message; what was refused, where the first line only says how much."""
    lines = clean(_COUNTED.sub("", message.strip())).strip().splitlines()
    return lines[0] if lines else ""


def unraised(message: str) -> str:
    """The same without the name of the exception, which a check's findings do not have."""
    return _EXCEPTION.sub("", signature(message))
