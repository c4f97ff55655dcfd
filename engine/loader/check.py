"""Comparing what a checkpoint holds with what the model expects, before any data is read. Imports no torch."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from staticfire.engine.loader.header import FLOATS, TensorEntry
from staticfire.engine.loader.spec import TensorSpec

MOST_FAULTS = 20
"""Faults printed in full; the rest are counted."""


def check(entries: Mapping[str, TensorEntry], specs: Iterable[TensorSpec], faults: list[str]) -> None:
    """Append to `faults` every tensor that is missing, unexpected, of another shape, or not of a float dtype.

    An entry of dtype `?` belongs to a file that is already reported as unreadable.
    """
    expected = {spec.name: spec for spec in specs}
    unexpected = sorted(entries.keys() - expected.keys())
    for name, spec in expected.items():
        entry = entries.get(name)
        if entry is None:
            if spec.presence == "required":
                near = get_close_matches(name, unexpected, n=1, cutoff=0.8)
                hint = f"; the checkpoint has {near[0]!r}" if near else ""
                faults.append(f"tensor {name!r} of shape {list(spec.shape)} is missing{hint}")
            continue
        if entry.dtype == "?" or spec.presence == "ignored":
            continue
        if entry.shape != spec.shape:
            faults.append(
                f"{entry.file.name}: tensor {name!r} has shape {list(entry.shape)}, "
                f"config.json makes it {list(spec.shape)}"
            )
        if entry.dtype not in FLOATS:
            faults.append(
                f"{entry.file.name}: tensor {name!r} has dtype {entry.dtype}; "
                f"a weight is one of {', '.join(sorted(FLOATS))}"
            )
    faults.extend(
        f"{entries[name].file.name}: tensor {name!r} is unexpected: this model has no such weight"
        for name in unexpected
    )


def summary(faults: list[str]) -> str:
    """Faults in one message, the first `MOST_FAULTS` in full."""
    shown = faults[:MOST_FAULTS]
    if len(faults) > len(shown):
        shown = [*shown, f"and {len(faults) - len(shown)} more"]
    return "\n".join(f"  {fault}" for fault in shown)
