"""The GPUs that kernels are compiled for, none of which has to be present. Imports neither torch nor triton."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from staticfire.kernels.names import did_you_mean

FP_FUSION = "1"
"""Value of TRITON_DEFAULT_FP_FUSION wherever our kernels are compiled: Triton 3.10 flips its own default, and most
binaries with it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU architecture.

    Attributes:
        name: As the compilers call it.
        backend: Triton's backend.
        arch: What Triton's `GPUTarget` takes.
        warp_size: Lanes of a warp or wavefront.
        shared_limit: Bytes of shared memory that one program can have.
        registers: 32-bit registers that one lane can have.
        description: Devices that have it.
    """

    name: str
    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int
    shared_limit: int
    registers: int
    description: str

    @property
    def amd(self) -> bool:
        """Whether it is AMD's."""
        return self.backend == "hip"

    @property
    def num_stages(self) -> int:
        """Depth of software pipelining where a launcher does not say, by Triton's backend."""
        return 2 if self.amd else 3


# Shared memory of one block: CUDA C++ programming guide, "Technical Specifications per Compute Capability", opt-in
# maximum (what an SM has, less 1 KiB). AMD: LDS of a workgroup, CDNA 3 and CDNA 4 instruction set architecture guides.
_KIB = 1024
TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("sm_80", "cuda", 80, 32, 163 * _KIB, 255, "NVIDIA A100"),
        Target("sm_90", "cuda", 90, 32, 227 * _KIB, 255, "NVIDIA H100, H200"),
        Target("sm_100", "cuda", 100, 32, 227 * _KIB, 255, "NVIDIA B200"),
        Target("sm_120", "cuda", 120, 32, 99 * _KIB, 255, "NVIDIA RTX 50, RTX PRO Blackwell"),
        Target("gfx942", "hip", "gfx942", 64, 64 * _KIB, 512, "AMD Instinct MI300X"),
        Target("gfx950", "hip", "gfx950", 64, 160 * _KIB, 512, "AMD Instinct MI355X"),
    )
}


def find_target(name: str) -> Target:
    """Look a target up.

    Args:
        name: Such as `sm_90`.

    Returns:
        It.

    Raises:
        ValueError: There is no such target.
    """
    if name not in TARGETS:
        raise ValueError(f"unknown target {name!r}; known: {', '.join(TARGETS)}{did_you_mean(name, TARGETS)}")
    return TARGETS[name]
