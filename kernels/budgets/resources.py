"""What one compiled kernel takes of its GPU. Imports nothing heavy."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
    def from_json(cls, data: Mapping[str, Any]) -> "Resources":
        """The reverse of `as_json`.

        Raises:
            TypeError: Attributes are missing or unknown.
        """
        return cls(**data)
