"""What became of every value: what was typed, what the front end resolved, what each engine settled on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from staticfire.engine.config.draft import KEYWORD_OF
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.config.resolution import Value
from staticfire.engine.view import Plain, flatten

UNSET: Final = object()
"""Stands for a value that there is none of at this stage."""


@dataclass(frozen=True, slots=True)
class Row:
    """One value.

    Attributes:
        field: `section.field`.
        typed: As typed; UNSET where it was not.
        resolved: As the front end resolved it; UNSET where only a worker can settle it.
        source: Who resolved it: `typed`, `default`, `derived`; empty where nobody did.
        settled: By each engine, by index; empty where engines do not have it.
    """

    field: str
    typed: Any
    resolved: Any
    source: str
    settled: Mapping[int, Plain]

    @property
    def changed(self) -> bool:
        """Whether an engine settled on something else than was resolved."""
        return self.resolved is not UNSET and any(value != self.resolved for value in self.settled.values())

    @property
    def uniform(self) -> bool:
        """Whether all engines settled on one value."""
        return len(set(self.settled.values())) <= 1


def rows(
    typed: Mapping[str, Any], resolved: Mapping[str, Value], engines: Mapping[int, EngineConfig]
) -> tuple[Row, ...]:
    """Follow every value from the command line into the engines.

    Args:
        typed: Keyword -> what was typed.
        resolved: `section.field` -> what came of it.
        engines: What each engine runs with. A run-time value takes the place of a resolved one of the same name.

    Returns:
        Resolved fields in their order, then those that only a worker settles.
    """
    flat = {index: flatten(config) for index, config in engines.items()}
    found = []
    taken = set()
    for name, value in resolved.items():
        runtime = f"runtime.{name.partition('.')[2]}"
        settled_as = runtime if any(runtime in fields for fields in flat.values()) else name
        taken.add(settled_as)
        found.append(
            Row(
                field=name,
                typed=typed.get(KEYWORD_OF.get(name, name.partition(".")[2]), UNSET),
                resolved=value.value,
                source=value.source,
                settled={index: fields[settled_as] for index, fields in flat.items() if settled_as in fields},
            )
        )
    late = dict.fromkeys(name for fields in flat.values() for name in fields if name.startswith("runtime."))
    found += [
        Row(name, UNSET, UNSET, "", {index: fields[name] for index, fields in flat.items() if name in fields})
        for name in late
        if name not in taken
    ]
    return tuple(found)


def as_json(row: Row) -> dict[str, Any]:
    """The row for machines; a stage that has no value is left out."""
    stages = {"typed": row.typed, "resolved": row.resolved}
    return {
        "field": row.field,
        **{name: value for name, value in stages.items() if value is not UNSET},
        **({"source": row.source} if row.source else {}),
        "settled": {str(index): value for index, value in row.settled.items()},
    }
