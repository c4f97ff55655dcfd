"""`staticfire kernels --roofline DEVICE --shape …`: the least time of an op on a device, on paper."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from staticfire.harness.budgets.libraries import needed
from staticfire.harness.errors import InputError, nearest
from staticfire.kernels.registry import OPS, Op, find_op
from staticfire.kernels.roofline import Ceilings, Floor, find_ceilings, floor, parameters, parse_shape
from staticfire.kernels.variant import Cost

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Line:
    """One op.

    Attributes:
        op: Its name.
        shape: What was given, or is given by default.
        cost: Bytes and operations; None where shapes are missing.
        least: The least time; None likewise.
        missing: Shapes that were not given.
    """

    op: str
    shape: Mapping[str, Any]
    cost: Cost | None
    least: Floor | None
    missing: tuple[str, ...]


def lines(device: str, ops: Sequence[str], shape: Mapping[str, str]) -> tuple[Ceilings, list[Line]]:
    """Work out every op.

    Args:
        device: Name of a device.
        ops: Names; none for all whose shapes are given.
        shape: Name -> value as typed.

    Returns:
        (what the device can do, a line an op).

    Raises:
        InputError: An unknown name or value, or an op was asked for whose shapes are not given.
    """
    try:
        ceilings = find_ceilings(device)
        chosen = [find_op(name) for name in dict.fromkeys(ops)] or list(OPS.values())
        with needed():
            found = [_line(op, shape, ceilings) for op in chosen]
    except ValueError as error:
        raise InputError(str(error)) from error
    known = {name for op in chosen for name in parameters(op.cost)}
    if unknown := sorted(set(shape) - known):
        raise InputError(
            f"--shape: no op here has {', '.join(unknown)}.{nearest(unknown[0], known)} "
            f"Known: {', '.join(sorted(known))}."
        )
    if ops and (short := [line for line in found if line.missing]):
        faults = [f"{line.op} needs {', '.join(line.missing)}" for line in short]
        raise InputError(f"--shape: {'; '.join(faults)}.")
    if all(line.missing for line in found):
        raise InputError(f"--shape: give the shapes of an op, such as {_example()}.")
    return ceilings, found


def text(ceilings: Ceilings, found: Sequence[Line]) -> str:
    """A table of the ops whose shapes are given, and what the others need."""
    tera = {unit: peak / 1e12 for unit, peak in ceilings.peaks.items()}
    rows = [
        f"{ceilings.device}: {ceilings.bandwidth / 1e12:g} TB/s; "
        + ", ".join(f"{unit} {peak:g}" for unit, peak in tera.items())
        + " Top/s (data sheet, dense)",
        "",
        f"{'op':26}{'read':>12}{'written':>12}{'operations':>12}  {'unit':6}{'floor':>12}  bound by",
    ]
    for line in found:
        if line.cost is not None and line.least is not None:
            cost, least = line.cost, line.least
            rows.append(
                f"{line.op:26}{_scaled(cost.read)}B{_scaled(cost.written)}B{_scaled(cost.operations)} "
                f"  {cost.unit:6}{_scaled_seconds(least.seconds)}  {least.bound}"
            )
            rows.append(f"  {', '.join(f'{name}={value}' for name, value in line.shape.items())}")
    if short := [f"{line.op} ({', '.join(line.missing)})" for line in found if line.missing]:
        rows += ["", f"not given: {'; '.join(short)}"]
    return "\n".join([*rows, ""])


def document(ceilings: Ceilings, found: Sequence[Line]) -> dict[str, Any]:
    """The same as data; docs/schemas/roofline.json describes it."""
    return {
        "schema": SCHEMA,
        "device": ceilings.device,
        "bandwidth": ceilings.bandwidth,
        "peaks": dict(ceilings.peaks),
        "ops": [
            {
                "op": line.op,
                "shape": dict(line.shape),
                "read": line.cost.read,
                "written": line.cost.written,
                "operations": line.cost.operations,
                "unit": line.cost.unit,
                "memory_seconds": line.least.memory,
                "compute_seconds": line.least.compute,
                "floor_seconds": line.least.seconds,
                "bound": line.least.bound,
            }
            for line in found
            if line.cost is not None and line.least is not None
        ],
        "not_given": {line.op: list(line.missing) for line in found if line.missing},
    }


def _line(op: Op, shape: Mapping[str, str], ceilings: Ceilings) -> Line:
    takes = parameters(op.cost)
    given = {name: parse_shape(name, shape[name], one) for name, one in takes.items() if name in shape}
    default = {name: one.default for name, one in takes.items() if one.default is not inspect.Parameter.empty}
    missing = tuple(name for name in takes if name not in given and name not in default)
    whole = {name: {**default, **given}[name] for name in takes if name not in missing}
    if missing:
        return Line(op.name, whole, None, None, missing)
    cost = op.cost(**whole)
    return Line(op.name, whole, cost, floor(cost, ceilings), ())


def _example() -> str:
    op = next(iter(OPS.values()))
    needed = [name for name, one in parameters(op.cost).items() if one.default is inspect.Parameter.empty]
    return f"--op {op.name} --shape {','.join(f'{name}=4096' for name in needed)}"


def _scaled(number: float) -> str:
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= size:
            return f"{number / size:9.4g} {letter}"
    return f"{number:9.4g}  "


def _scaled_seconds(seconds: float) -> str:
    for size, unit in ((1.0, "s "), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:9.4g} {unit}"
    return f"{seconds / 1e-9:9.4g} ns"
