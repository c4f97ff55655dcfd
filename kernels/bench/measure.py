"""From a case to its numbers: compared first, then timed. Everything that waits for a device is handed in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

from staticfire.kernels.bench.case import Case, Rival
from staticfire.kernels.bench.clock import Reached, cpu_microseconds
from staticfire.kernels.roofline import Ceilings, Floor, floor
from staticfire.kernels.testing import assert_close
from staticfire.kernels.variant import Cost

Clock = Callable[[Callable[[], object]], float]


def on_cpu(case: Case) -> Mapping[str, float]:
    """Compare the quick path with the reference, then time both.

    Args:
        case: A line of the table.

    Returns:
        backend -> microseconds.

    Raises:
        AssertionError: The paths disagree.
    """
    case.reset()
    quick = case.call("torch").clone()
    case.reset()
    assert_close(case.op, quick, case.call("reference"), dtype=torch.float32)
    return {
        "torch": cpu_microseconds(lambda: case.call("torch")),
        "reference": cpu_microseconds(lambda: case.call("reference"), budget=0.05),
    }


@dataclass(frozen=True, slots=True)
class Timed:
    """What was measured of a case on a GPU.

    Attributes:
        triton: Microseconds of the Triton kernel.
        torch: Microseconds of the PyTorch path.
        rivals: Name -> microseconds, or why there are none.
    """

    triton: float
    torch: float
    rivals: Mapping[str, float | str] = field(default_factory=dict)


def on_gpu(case: Case, dtype: torch.dtype, clock: Clock) -> Timed:
    """Compare the kernel with the PyTorch path, which is held to the reference on the CPU, then time both and rivals.

    Args:
        case: A line of the table.
        dtype: Whose tolerance holds.
        clock: Times a call, in microseconds.

    Returns:
        The times.

    Raises:
        AssertionError: The paths disagree.
    """
    case.reset()
    quick = case.call("torch").clone()
    case.reset()
    assert_close(case.op, case.call("triton"), quick, dtype=dtype)
    others = {rival.name: _rival(case, rival, quick, dtype, clock) for rival in case.rivals}
    return Timed(
        triton=clock(lambda: case.call("triton")),
        torch=clock(lambda: case.call("torch")),
        rivals={name: outcome for name, outcome in others.items() if outcome is not None},
    )


def _rival(case: Case, rival: Rival, expected: torch.Tensor, dtype: torch.dtype, clock: Clock) -> float | str | None:
    """Time a rival; None where it is not installed."""
    try:
        call = rival.make()
    except ModuleNotFoundError:
        return None
    except Exception as error:  # noqa: BLE001 -- whatever is wrong with it, our own numbers are still wanted
        return f"cannot be made: {type(error).__name__}"
    try:
        assert_close(case.op, call(), expected, dtype=dtype)
    except AssertionError:
        return "gives other numbers"
    except Exception as error:  # noqa: BLE001 -- the same
        return f"fails: {type(error).__name__}"
    return clock(call)


def achieved(cost: Cost, microseconds: float, device: Reached) -> str:
    """Say what a time means.

    Args:
        cost: Of the op.
        microseconds: It took.
        device: What was measured of the device.

    Returns:
        Bandwidth or operations a second, whichever bounds the op on this device, and the share of what was measured.
    """
    seconds = microseconds / 1e6
    least = attainable(cost, device)
    if least.bound == "memory":
        rate = (cost.read + cost.written) / seconds
        return f"{rate / 1e9:8.0f} GB/s {rate / device.bandwidth:6.0%} of a copy"
    rate = cost.operations / seconds
    return f"{rate / 1e12:8.1f} Top/s {rate / device.products[cost.unit]:5.0%} of a product"


def attainable(cost: Cost, device: Reached) -> Floor:
    """The least time by what the device was measured to do; an unmeasured unit is not the bound."""
    compute = cost.operations / device.products[cost.unit] if cost.unit in device.products else 0.0
    return Floor((cost.read + cost.written) / device.bandwidth, compute)


def on_paper(cost: Cost, ceilings: Ceilings | None) -> str:
    """The least time by the data sheet, in microseconds; a dash for a device without one here."""
    return "-" if ceilings is None else f"{floor(cost, ceilings).seconds * 1e6:.1f}"
