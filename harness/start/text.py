"""The table of a start for people."""

import json
from collections.abc import Sequence
from typing import Any, Final

from staticfire.harness.start.table import UNSET, Row

HEAD: Final = ("value", "typed", "resolved", "", "settled")


def render(rows: Sequence[Row]) -> str:
    """Lay the rows out in columns. A settled value is shown where it is another than was resolved, or the only one.

    Args:
        rows: From `table.rows`.
    """
    cells = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEAD) - 1)]
    lines = [
        "  ".join([*(text.ljust(width) for text, width in zip(line[:-1], widths, strict=True)), line[-1]]).rstrip()
        for line in cells
    ]
    return "\n".join(lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (row.field, _shown(row.typed), _shown(row.resolved), row.source, _settled(row))


def _settled(row: Row) -> str:
    if not row.settled:
        return ""
    if row.uniform:
        (value,) = set(row.settled.values())
        return _shown(value)
    return ", ".join(f"engine {index}: {_shown(value)}" for index, value in row.settled.items())


def _shown(value: Any) -> str:
    """As JSON has it, but text without quotes; nothing for no value."""
    if value is UNSET:
        return ""
    return value if isinstance(value, str) else json.dumps(value, default=str)
