"""The least time an op can take on a device: what it costs, divided by what the device can do. Imports nothing heavy.

Peaks are those of the vendors' data sheets, dense (without structured sparsity), of the SXM or OAM module where there
are several. No kernel reaches them; `python -m staticfire.kernels.bench` measures what a real device does.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from staticfire.kernels.names import did_you_mean
from staticfire.kernels.variant import Cost

_TERA: Final = 10**12
_GIGA: Final = 10**9


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a device can do at most.

    Attributes:
        device: Its name in `matrices/devices.toml`.
        target: The architecture it is compiled for; None for one that has no budgets.
        marketing: What the driver calls it, in part.
        bandwidth: Bytes a second.
        peaks: Unit, as in `Cost` -> operations a second.
    """

    device: str
    target: str | None
    marketing: str
    bandwidth: float
    peaks: Mapping[str, float]


def _peaks(*, bf16: float, fp8: float | None, int8: float, fp32: float, fp64: float) -> dict[str, float]:
    given = {"bf16": bf16, "fp16": bf16, "fp8": fp8, "int8": int8, "fp32": fp32, "fp64": fp64}
    return {unit: tera * _TERA for unit, tera in given.items() if tera is not None}


_HOPPER: Final = _peaks(bf16=989.4, fp8=1978.9, int8=1978.9, fp32=66.9, fp64=33.5)
CEILINGS: Final[Mapping[str, Ceilings]] = {
    one.device: one
    for one in (
        Ceilings("a100-80gb", "sm_80", "A100", 2039 * _GIGA, _peaks(bf16=312, fp8=None, int8=624, fp32=19.5, fp64=9.7)),
        Ceilings("h100-80gb", "sm_90", "H100", 3350 * _GIGA, _HOPPER),
        Ceilings("h200-141gb", "sm_90", "H200", 4800 * _GIGA, _HOPPER),
        Ceilings("b200", "sm_100", "B200", 8000 * _GIGA, _peaks(bf16=2250, fp8=4500, int8=4500, fp32=75, fp64=37)),
        Ceilings("l4", None, "L4", 300 * _GIGA, _peaks(bf16=121, fp8=242, int8=242, fp32=30.3, fp64=0.47)),
        Ceilings(
            "mi300x",
            "gfx942",
            "MI300X",
            5300 * _GIGA,
            _peaks(bf16=1307.4, fp8=2614.9, int8=2614.9, fp32=163.4, fp64=81.7),
        ),
    )
}
"""NVIDIA: data sheets of A100 80GB SXM, H100 SXM, H200 SXM, HGX B200 and L4. AMD: data sheet of the Instinct MI300X."""


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time, and what sets it.

    Attributes:
        memory: Seconds to move the bytes.
        compute: Seconds to do the operations.
    """

    memory: float
    compute: float

    @property
    def seconds(self) -> float:
        """The least time."""
        return max(self.memory, self.compute)

    @property
    def bound(self) -> str:
        """`memory` or `compute`."""
        return "memory" if self.memory >= self.compute else "compute"


def find_ceilings(device: str) -> Ceilings:
    """Look a device up.

    Args:
        device: Its name.

    Returns:
        What it can do.

    Raises:
        ValueError: No such device is known.
    """
    if device not in CEILINGS:
        hint = did_you_mean(device, CEILINGS)
        raise ValueError(f"no ceilings of a device {device!r}; known: {', '.join(CEILINGS)}{hint}")
    return CEILINGS[device]


def floor(cost: Cost, ceilings: Ceilings) -> Floor:
    """Divide what an op costs by what a device can do.

    Args:
        cost: Of the op.
        ceilings: Of the device.

    Returns:
        The least time.

    Raises:
        ValueError: The device does not have the unit.
    """
    if cost.unit not in ceilings.peaks:
        raise ValueError(f"{ceilings.device} has no {cost.unit} products; it has {', '.join(ceilings.peaks)}")
    return Floor((cost.read + cost.written) / ceilings.bandwidth, cost.operations / ceilings.peaks[cost.unit])


def parameters(cost: Callable[..., Cost]) -> Mapping[str, inspect.Parameter]:
    """Shapes that a cost function takes, by name."""
    return inspect.signature(cost).parameters


def parse_shape(name: str, text: str, parameter: inspect.Parameter) -> Any:
    """Read one value of a shape.

    Args:
        name: Of the parameter.
        text: As it was typed.
        parameter: Of the cost function.

    Returns:
        The value, of the parameter's type.

    Raises:
        ValueError: It is none of that type.
    """
    wanted = parameter.annotation
    if wanted is bool:
        if text not in {"true", "false"}:
            raise ValueError(f"{name} must be true or false, got {text!r}")
        return text == "true"
    if wanted is int:
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, got {text!r}")
        return int(text)
    return text
