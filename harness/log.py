r"""Text of others, made harmless for a log that a CI system reads.

Systems that show a log take some of its lines for commands: GitHub `::error::…` and `::set-output …` at the start of a
line, GitHub and Azure `##[…]` and `##vso[…]` anywhere, Buildkite `--- `, `+++ `, `~~~ ` and `^^^ ` for groups; and a
terminal obeys escape sequences. What an engine, a test or a file says may be shown, and must be none of these.
"""

import re
from typing import Final

_COLOUR: Final = r"\x1b\[[0-9;]*m"
_C: Final = rf"(?:{_COLOUR})*"
"""Colours may stand between any two characters, and be taken out before the log is read."""
_GROUPS: Final = "|".join(_C.join(map(re.escape, mark)) for mark in ("---", "+++", "~~~", "^^^"))
_START: Final = re.compile(rf"^((?:[^\S\n]|{_COLOUR})*)(?=:{_C}:|(?:{_GROUPS}){_C}(?:\s|$))", re.MULTILINE)
_HASHES: Final = re.compile(rf"#(?={_C}#{_C}(?:\w{_C})*\[)")
_CONTROL: Final = re.compile(rf"(?!{_COLOUR})[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    r"""A text that a log shows and does not obey; colours stay.

    A line that would be a command gets a backslash in front, `##[` becomes `#\#[`, and every control character but
    newlines and tabs its escape. A text that is harmless stays as it is, and a safe text stays the same.
    """
    text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
    return _START.sub(r"\1\\", _HASHES.sub(r"#\\", text))


def safe_json(text: str) -> str:
    r"""A JSON text without `##`, which only its strings can hold: they say the same with `#\u0023`."""
    return text.replace("##", "#\\u0023")


def safe_xml(text: str) -> str:
    r"""An XML text that says the same with references to characters where a log would read a command."""
    text = _HASHES.sub("&#35;", text)
    parts, end = [], 0
    for found in _START.finditer(text):
        parts += [text[end : found.end()], f"&#{ord(text[found.end()])};"]
        end = found.end() + 1
    return "".join([*parts, text[end:]])
