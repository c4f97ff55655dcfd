"""What a message is about: a rule, a machine or a network, or else its own words without what varies."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from staticfire.harness.check.messages import clean, normalise

WRAPPERS: Final = re.compile(
    r"Engine core initialization failed|See root cause above|EngineDeadError|Failed core proc|"
    r"EngineCore encountered an issue|WorkerProc initialization failed|RayTaskError|"
    r"child process .*(?:died|exited)|Engine process failed to start",
    re.IGNORECASE,
)
"""What says that something else failed: its cause stands elsewhere in the log."""

_EXCEPTION: Final = re.compile(r"^(?:[\w.]*\b)?\w+(?:Error|Exception|Refused): ")
_RULE: Final = re.compile(r"\bSF\d{3}\b")
ENGINE_WORDS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"Chunked prefill is required for (?:mamba cache mode 'align'|Mamba prefix caching)"), "SF101"),
    (re.compile(r"mamba_cache_mode=align needs chunked prefill"), "SF101"),
    (re.compile(r"max_num_batched_tokens \(\d+\) is smaller than max_model_len \(\d+\)"), "SF201"),
)
"""What engines say when they refuse by a rule that ours knows under a code."""

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


def rule_of(message: str) -> str:
    """The code of the rule that a message is about; empty where none is known."""
    found = _RULE.search(message)
    if found:
        return found[0]
    return next((code for pattern, code in ENGINE_WORDS if pattern.search(message)), "")


def infrastructure(message: str) -> str:
    """What failed besides the product; empty where nothing says so, and for what a test asserts of such words."""
    if _ASSERTED.match(message):
        return ""
    return next((name for pattern, name in INFRASTRUCTURE if pattern.search(message)), "")


def signature(message: str) -> str:
    """The first line of a message without what varies from one test to the next."""
    lines = clean(message).strip().splitlines()
    return normalise(lines[0])[:300] if lines else ""


def unraised(message: str) -> str:
    """The same without the name of the exception, which a check's findings do not have."""
    return _EXCEPTION.sub("", signature(message))
