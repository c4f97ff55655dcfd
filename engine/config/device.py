"""The device a configuration is judged for, as a plain value."""

from dataclasses import dataclass
from typing import Literal

DeviceType = Literal["cpu", "cuda", "rocm"]


@dataclass(frozen=True, slots=True)
class Device:
    """A device by its facts; nothing is asked of the machine at hand.

    Attributes:
        name: Name in `matrices/devices.toml`, such as `h100-80gb`.
        type: What the engine's platform checks see.
        memory_bytes: Memory of one device, in bytes.
        capability: CUDA compute capability as (major, minor), None where there is none.
        count: Devices visible to one engine.
    """

    name: str
    type: DeviceType
    memory_bytes: int
    capability: tuple[int, int] | None = None
    count: int = 1


CPU = Device(name="cpu", type="cpu", memory_bytes=24 * 2**30)
