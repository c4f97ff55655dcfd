"""How values came about, as sentences, from what was typed on."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.draft import KEYWORD_OF
from staticfire.engine.config.resolution import Value


def show(value: Any) -> str:
    """A value as a user would type it."""
    return str(value)


def in_bytes(size: int) -> str:
    """A size in the largest unit that leaves a digit before the point: `64.6 GiB`."""
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"


def sentence(field: str, value: Value) -> str:
    """`mamba_cache_mode=align: derived, because the model is hybrid and prefix caching is on`."""
    name = KEYWORD_OF.get(field, field.partition(".")[2])
    because = f", because {value.because}" if value.because else ""
    return f"{name}={show(value.value)}: {value.source}{because}"


def chain(values: Mapping[str, Value], fields: Iterable[str]) -> tuple[str, ...]:
    """Follow `fields` back through their parents.

    Args:
        values: Every settled value.
        fields: Where to end.

    Returns:
        One sentence a value, causes before effects, each once.
    """
    seen: set[str] = set()
    lines: list[str] = []

    def visit(field: str) -> None:
        if field in seen or field not in values:
            return
        seen.add(field)
        for parent in values[field].parents:
            visit(parent)
        lines.append(sentence(field, values[field]))

    for field in fields:
        visit(field)
    return tuple(lines)
