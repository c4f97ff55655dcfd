"""Whether output is coloured and moves, by the conventions: NO_COLOR, FORCE_COLOR, TERM=dumb, and else the terminal.

https://no-color.org and https://force-color.org: a variable counts if it is set and not empty; NO_COLOR goes first.
"""

from collections.abc import Mapping


def wanted(environment: Mapping[str, str]) -> bool | None:
    """Whether to colour; None where the stream decides."""
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return False if is_dumb(environment) else None


def is_dumb(environment: Mapping[str, str]) -> bool:
    """Whether the terminal can only append lines: no colours, and no line that is written over."""
    return environment.get("TERM", "").lower() == "dumb"
