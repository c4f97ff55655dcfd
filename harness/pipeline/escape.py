r"""The agent's interpolation of pipeline files, and texts that come through it unchanged.

An agent replaces `$NAME` and `${NAME…}` in every text of a pipeline that it uploads. `$$` stands for one `$`. So does
`\$`, while `\\` stays as it is: a text with an odd number of backslashes before a `$` has no escaped form.
"""

import re
from collections.abc import Mapping
from typing import Final

_ODD: Final = re.compile(r"(?<!\\)\\(?:\\\\)*\$")
_TOKEN: Final = re.compile(r"\\\\|\\\$|\$\$|\$\(|\$\{(?P<brace>[^}]*)\}?|\$(?P<name>[^\W\d_]\w*)|\$(?=.)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\\\|\\\$|\$\$")
_PLAIN: Final = re.compile(r"(?P<name>[^\W\d_]\w*)(?:(?P<operator>:-|-)(?P<default>.*))?", re.DOTALL)


def escaped(text: str) -> str:
    r"""The text as it must stand in a pipeline file.

    Raises:
        ValueError: It holds `\$` in a way that no pipeline file can say; the message names the column.
    """
    odd = _ODD.search(text)
    if odd is not None:
        raise ValueError(
            f"column {odd.end()}: a backslash before $ does not survive an upload; write '$' in single quotes instead"
        )
    return text.replace("$", "$$")


def unescaped(text: str) -> str:
    """The text that stands escaped in a pipeline file; a variable that an agent would replace stays as it is."""
    return _ESCAPED.sub(lambda found: found[0] if found[0] == "\\\\" else "$", text)


def interpolated(text: str, environment: Mapping[str, str]) -> str:
    """The text as an agent makes it of what stands in a pipeline file.

    Raises:
        ValueError: What the agent cannot parse.
    """

    def value(found: re.Match[str]) -> str:
        token = found[0]
        if token in {"\\\\", "$("}:
            return token
        if token in {"\\$", "$$"}:
            return "$"
        if found["name"] is not None:
            return environment.get(found["name"], "")
        if found["brace"] is None:
            raise ValueError(f"column {found.start() + 1}: $ begins no variable that an agent can read; write $$")
        return _expanded(found["brace"], environment, found.start() + 1)

    return _TOKEN.sub(value, text)


def _expanded(inside: str, environment: Mapping[str, str], column: int) -> str:
    found = _PLAIN.fullmatch(inside)
    if found is None:
        raise ValueError(f"column {column}: ${{{inside}}} is no expansion that is read here; write $$ for a $")
    known = environment.get(found["name"])
    if found["operator"] is None:
        return known or ""
    fallback = known is None or (found["operator"] == ":-" and not known)
    return interpolated(found["default"], environment) if fallback else str(known)
