"""Engine messages: what to show, what makes two of them the same, and a slug to name one by."""

import re
import textwrap
from functools import cache, lru_cache
from typing import Final

_PYDANTIC_HEAD: Final = re.compile(r"^\s*\d+ validation errors? for [\w.\[\]]+\s*")
_PYDANTIC_TAIL: Final = re.compile(
    r"\s*\[type=[\w.]+(?:, input_value=.*?)?(?:, input_type=\w+)?\]|\s*For further information visit \S+", re.DOTALL
)
_COUNT_HEAD: Final = re.compile(r"^Configuration refused: \d+ faults?\s*")
"""How the reference engine heads its faults; what is refused follows."""
_VALUE_ERROR: Final = re.compile(r"(?:^|(?<=\n))\s*(?:Value error|Assertion failed), ")
_CONTROL: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)
_PATH: Final = re.compile(r"(?<![\w.])(?:/[\w.+-]+){2,}/?")
_NUMBER: Final = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d_,]*(?:\.\d+)?(?:e[-+]?\d+)?\b")
_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]+\b")
_WHOLE: Final = re.compile(r"(?<![\w.$-])(?<!\.py:)(?<![A-Z_]{3}=)\d(?:[\d_,]*\d)?\b(?!%|[:/-]\w|\.(?!0\b)\w)")
"""A whole number, `2048.0` included; no part of a version, a name, a percentage or an environment variable's value."""
_DIGITS: Final = 18
"""Longer numbers are no values that anybody types."""
_STOP: Final = {"enable", "disable", "use", "max", "num", "no", "of", "size", "the", "is", "config", "type"}


def words(text: str) -> list[str]:
    """Lower-case words of a text, in order."""
    return re.findall(r"[a-z0-9]+", text.lower())


@lru_cache(maxsize=4096)
def clean(message: str) -> str:
    """The engine's own words: without pydantic's wrapping, counts of faults and control characters."""
    text = _PYDANTIC_TAIL.sub("", _PYDANTIC_HEAD.sub("", message))
    bare = _COUNT_HEAD.sub("", text)
    text = textwrap.dedent(f"  {bare}") if bare != text and bare else text
    text = _VALUE_ERROR.sub("", text)
    return printable("\n".join(line.rstrip() for line in text.strip().splitlines()))


def printable(text: str) -> str:
    """Text without characters that steer a terminal or reorder what is read; each becomes its escape."""
    return _CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def named(name: str) -> str:
    """A name, such as a file's, on one line and so that it can be told from every other: newlines are escaped, too."""
    return printable(name.replace("\\", "\\\\")).replace("\n", "\\n").replace("\t", "\\t")


def one_line(text: str, most: int = 300) -> str:
    """A text on one line, shortened."""
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


@lru_cache(maxsize=65536)
def normalise(message: str, model: str = "") -> str:
    """What two messages of the same cause have in common: no numbers, paths, addresses, model names or spacing."""
    text = clean(message)
    for name in sorted({model, model.rsplit("/", 1)[-1]} - {""}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])", "<model>", text)
    for pattern, mark in ((_ADDRESS, "<address>"), (_PATH, "<path>"), (_NUMBER, "<n>")):
        text = pattern.sub(mark, text)
    return " ".join(text.split())


def origin_file(origin: str) -> str:
    """An origin without line numbers, which move with every edit of the engine."""
    return re.sub(r":\d+\b", "", origin)


def slug(message: str, most: int = 8) -> str:
    """A short name for a message: `chunked-prefill-is-required-for-mamba-cache-mode`."""
    return "-".join(words(re.sub(r"<\w+>", " ", normalise(message)))[:most])


@lru_cache(maxsize=65536)
def mentions(message: str, keyword: str) -> bool:
    """Whether a message speaks of a keyword: by its name, its flag, or every telling word of it."""
    return _spoken(keyword).search(message.lower()) is not None


@cache
def _spoken(keyword: str) -> re.Pattern[str]:
    flag = re.escape(keyword.replace("_", "-"))
    ways = [rf"(?<!\w){re.escape(keyword)}(?!\w)", rf"--(?:no-)?{flag}(?![\w-])"]
    telling = [word for word in keyword.split("_") if word not in _STOP]
    if len(telling) > 1:
        ways.append(r"\b" + r"[\s_-]+".join(map(re.escape, telling)) + r"\b")
    return re.compile("|".join(ways))


def names(message: str, keyword: str) -> bool:
    """Whether a message spells a keyword out, as a name or as a flag."""
    return _spelled(keyword).search(message) is not None


def named_at(message: str, keyword: str) -> int:
    """Where a message first spells a keyword out; after its end where it does not."""
    found = _spelled(keyword).search(message)
    return found.start() if found else len(message)


@cache
def _spelled(keyword: str) -> re.Pattern[str]:
    spelled = re.escape(keyword).replace("_", "[_-]")
    return re.compile(rf"(?<![\w])(?:--(?:no-)?)?{spelled}(?![\w])", re.IGNORECASE)


def numbers(message: str, keyword: str) -> tuple[int, ...]:
    """Whole numbers that a message names where it speaks of a keyword, in order, each once.

    What other lines say, how many faults there are, and parts of versions and of names are no values to type.
    """
    lines = [line for line in clean(message).splitlines() if mentions(line, keyword)]
    found = (text.replace(",", "").replace("_", "") for line in lines for text in _WHOLE.findall(line))
    return tuple(dict.fromkeys(int(text) for text in found if len(text) <= _DIGITS))
