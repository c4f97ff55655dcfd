"""What one compiled kernel takes of its GPU. Imports nothing heavy."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Resources:
    """Read out of a compiled kernel.

    Attributes:
        registers: 32-bit registers of a lane (AMD: vector registers, accumulators included).
        spills: 32-bit vector registers of a lane that do not fit and live in memory. NVIDIA's compiler does not say
            how many there are: there it is a quarter of `stack_bytes`, as Triton counts them.
        scalar_spills: AMD: scalar registers that do not fit; they are kept in lanes of vector registers.
        stack_bytes: Memory of a lane for spills and arrays.
        shared_bytes: Shared memory of a program.
        code_bytes: Length of its machine code.
        tensor_core: Whether products run on tensor cores, and by which instructions.
        wide_loads: Loads of 128 bits a lane.
        unmasked: Loads and stores of blocks without a mask (single values are addressed by what was checked before).
        bounds: Comparisons of integers, which masks are made of.
    """

    registers: int
    spills: int
    scalar_spills: int
    stack_bytes: int
    shared_bytes: int
    code_bytes: int
    tensor_core: str | None
    wide_loads: int
    unmasked: int
    bounds: int

    def as_json(self) -> dict[str, Any]:
        """Its attributes."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> "Resources":
        """The reverse of `as_json`.

        Raises:
            ValueError: It is no such object; all faults at once.
        """
        if faults := cls.faults(data):
            raise ValueError("; ".join(faults))
        return cls(**data)

    @classmethod
    def faults(cls, data: Any) -> list[str]:
        """What keeps a value that was read from being such an object."""
        names = [one.name for one in fields(cls)]
        if not isinstance(data, Mapping):
            return ["must be an object"]
        if sorted(data) != sorted(names):
            return [f"must have the keys {', '.join(names)}"]
        return [f"{name} cannot be {data[name]!r}" for name in names if not _fits(name, data[name])]


def _fits(name: str, value: Any) -> bool:
    if name == "tensor_core":
        return value is None or isinstance(value, str)
    return whole_number(value)


def whole_number(value: Any) -> bool:
    """Whether a value that was read is a whole number from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
