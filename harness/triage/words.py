"""Which rule a text speaks of: by its code, or by what the catalogue says that engines print when they refuse by it.

Terminals and loggers break lines anywhere, so spacing counts for nothing. Summaries cut lines, so a text that ends in
dots may end inside such words.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from staticfire.engine.config.rules.registry import BY_CODE, RULES

MAX_TEXT: Final = 8_000
"""Characters of a text that are looked at."""
MAX_VALUE: Final = 200
"""Characters that a value in the middle of such words may have."""
LEAST_CUT: Final = 20
"""Characters of such words that must be left before the dots, for the rest to be believed."""
_CODE: Final = re.compile(r"\bSF\d{3}\b")
_FRAME: Final = str.maketrans("", "", "│┃")
"""Drawn around tracebacks by some terminals."""
_CUT: Final = re.compile(r"(?:\.{3}|…)$")
_VALUE: Final = re.compile(r"[\w.+-]*")


@dataclass(frozen=True, slots=True)
class _Words:
    code: str
    parts: tuple[str, ...]
    pattern: re.Pattern[str]


@lru_cache(maxsize=4096)
def rule_of(text: str) -> str:
    """The code of the rule that a text is about; empty where none is known."""
    text = text[:MAX_TEXT]
    named = next((code for code in _CODE.findall(text) if code in BY_CODE), "")
    if named:
        return named
    squeezed = _squeezed(text)
    found = [(match.start(), -len(match[0]), one.code) for one in _words() if (match := one.pattern.search(squeezed))]
    if found:
        return min(found)[2]
    if not _CUT.search(squeezed):
        return ""
    begun = {one.code for one in _words() if _begun(one.parts, _CUT.sub("", squeezed))}
    return begun.pop() if len(begun) == 1 else ""


def rules_in(text: str) -> frozenset[str]:
    """The codes of all rules whose words stand in a text."""
    squeezed = _squeezed(text)
    return frozenset(one.code for one in _words() if one.pattern.search(squeezed))


def _squeezed(text: str) -> str:
    return "".join(text.translate(_FRAME).split())


@cache
def _words() -> tuple[_Words, ...]:
    return tuple(_compiled(rule.code, said) for rule in RULES for said in rule.says)


def _compiled(code: str, said: str) -> _Words:
    parts = tuple(_squeezed(part) for part in said.split("{}"))
    return _Words(code, parts, re.compile(f".{{0,{MAX_VALUE}}}?".join(map(re.escape, parts))))


def _begun(parts: tuple[str, ...], text: str) -> bool:
    """Whether a text ends inside words that have these parts, values between them."""
    return any(_ends(parts, text[start:]) for start in _starts(parts[0], text))


def _starts(first: str, text: str) -> Iterator[int]:
    head = first[:LEAST_CUT]
    start = text.find(head)
    while start >= 0:
        yield start
        start = text.find(head, start + 1)


def _ends(parts: tuple[str, ...], text: str) -> bool:
    """Whether a text that begins with the first of these parts ends inside one of them, or in a value."""
    seen = len(parts[0])
    if not text.startswith(parts[0]):
        return len(text) >= LEAST_CUT and parts[0].startswith(text)
    text = text[seen:]
    for part in parts[1:]:
        at = text.find(part, 0, MAX_VALUE + len(part))
        if at < 0:
            begun = any(part.startswith(text[cut:]) for cut in range(min(len(text), MAX_VALUE)))
            return seen >= LEAST_CUT and (begun or _VALUE.fullmatch(text) is not None)
        seen, text = seen + len(part), text[at + len(part) :]
    return False
