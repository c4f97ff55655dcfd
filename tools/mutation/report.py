"""The table of mutants killed and survived."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from mutation.runs import Fate
from mutation.sample import Mutant

SHARE, LEAST = 0.95, 60


class Outcome(NamedTuple):
    """A mutant and what became of it."""

    mutant: Mutant
    fate: Fate


def table(outcomes: Sequence[Outcome], equivalent: Mapping[Mutant, str]) -> str:
    """A line of Markdown for every kernel, and one for all."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for outcome in outcomes:
        rows[f"{outcome.mutant.folder}.{outcome.mutant.function}"][0 if outcome.fate.killed else 1] += 1
    for mutant in equivalent:
        rows[f"{mutant.folder}.{mutant.function}"][2] += 1
    every = [sum(row[column] for row in rows.values()) for column in range(3)]
    lines = ["| kernel | killed | survived | equivalent |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {row[0]} | {row[1]} | {row[2]} |" for name, row in sorted(rows.items())]
    return "\n".join([*lines, f"| **all** | {every[0]} | {every[1]} | {every[2]} |"])


def verdict(outcomes: Sequence[Outcome], equivalent: Mapping[Mutant, str], *, partial: bool = False) -> int:
    """Print the table and the survivors.

    Args:
        outcomes: Mutants that were run.
        equivalent: Those that were not, and why.
        partial: A part of the sample proves nothing, but a survivor in it is one.

    Returns:
        0 if enough were killed, else 1.
    """
    killed = sum(outcome.fate.killed for outcome in outcomes)
    print(f"\n{table(outcomes, equivalent)}\n")
    for mutant, fate in outcomes:
        if not fate.killed:
            print(f"survived: {mutant.name} ({fate.how})\n{mutant.difference}\n")
    share = killed / len(outcomes) if outcomes else 1.0
    print(f"{killed} of {len(outcomes)} killed: {share:.1%}; at least {SHARE:.0%} of {LEAST} or more are demanded")
    if partial:
        return 0 if killed == len(outcomes) else 1
    return 0 if share >= SHARE and len(outcomes) >= LEAST else 1


def write(outcomes: Sequence[Outcome], equivalent: Mapping[Mutant, str], file: Path) -> None:
    """Write every fate as JSON."""
    document = {
        "mutants": [{"mutant": m.name, **fate.__dict__, "difference": m.difference} for m, fate in outcomes],
        "equivalent": [{"mutant": m.name, "reason": reason} for m, reason in equivalent.items()],
    }
    file.write_text(json.dumps(document, indent=2) + "\n")
