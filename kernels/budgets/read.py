"""Reading resources out of what Triton compiled: its own IR, assembly, and ELF binaries. Imports nothing heavy.

NVIDIA: registers and stack come from `cuobjdump`, which is in Triton's wheel beside its assembler. AMD: from the
metadata at the end of the assembly. Shared memory is what Triton asks for at a launch. Spill counts of the NVIDIA
assembler can be false alarms (https://github.com/triton-lang/triton/issues/1756), and a kernel that spills
thousands of bytes may use few registers: the stack is what tells.
"""

import re
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from staticfire.kernels.budgets.resources import Resources

_TENSOR_CORE: Final = re.compile(r"\b(tcgen05\.mma|wgmma\.mma_async|mma\.sync|v_smfmac|v_mfma)")
_WIDE_LOAD: Final = re.compile(
    r"\bld\.(?:global|relaxed\.\w+\.global)[\w.:]*\.(?:v4\.[a-z]?32|v2\.[a-z]?64|v8\.[a-z]?16|b128)"
    r"|\bcp\.async\.c[ag]\.shared\.global[\w.:]* \[[^\]]*\], \[[^\]]*\], (?:16|0x10)\b"
    r"|\b(?:global|buffer|flat)_load_(?:dwordx4|b128|lds_dwordx4)"
)
_ACCESS: Final = re.compile(r"(?P<kind>tt\.load|tt\.store) (?P<operands>[^:{]*)[^:]*: (?P<type>\S+)", re.ASCII)
_BOUND: Final = re.compile(r"arith\.cmpi ")


def instruction_mix(assembly: str) -> tuple[str | None, int]:
    """Look for the instructions that matter.

    Args:
        assembly: PTX, or AMD's assembly.

    Returns:
        (tensor core instructions, sorted and joined by a comma, or None; number of 128-bit loads).
    """
    found = sorted(set(_TENSOR_CORE.findall(assembly)))
    return ", ".join(found) or None, len(_WIDE_LOAD.findall(assembly))


def masks(ttir: str) -> tuple[int, int]:
    """Count what keeps accesses inside.

    Args:
        ttir: Triton's own intermediate form.

    Returns:
        (loads and stores of blocks without a mask, comparisons of integers).
    """
    unmasked = 0
    for access in _ACCESS.finditer(ttir):
        if access["type"].startswith("tensor<"):
            plain = 1 if access["kind"] == "tt.load" else 2
            unmasked += access["operands"].count("%") <= plain
    return unmasked, len(_BOUND.findall(ttir))


def code_bytes(elf: bytes) -> int:
    """Measure the machine code of a 64-bit little-endian ELF file.

    Args:
        elf: A cubin or hsaco.

    Returns:
        Length of its `.text` sections.

    Raises:
        ValueError: It is no such file.
    """
    if elf[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + size * index) for index in range(count)]
    base = headers[names][4]

    def name(header: tuple[int, ...]) -> bytes:
        start = base + header[0]
        return elf[start : elf.index(b"\0", start)]

    return sum(header[5] for header in headers if name(header) == b".text" or name(header).startswith(b".text."))


def cuobjdump_usage(text: str) -> tuple[int, int]:
    """Read the answer of `cuobjdump --dump-resource-usage` for a binary with one function.

    Args:
        text: The answer.

    Returns:
        (registers, bytes of stack).

    Raises:
        ValueError: It does not hold one function.
    """
    found = re.findall(r"^\s*REG:(\d+) STACK:(\d+) ", text, re.MULTILINE)
    if len(found) != 1:
        raise ValueError(f"cuobjdump tells of {len(found)} functions instead of one: {text.strip()!r}")
    return int(found[0][0]), int(found[0][1])


def amd_usage(assembly: str) -> Mapping[str, int]:
    """Read the metadata at the end of AMD's assembly, for a file with one kernel.

    Args:
        assembly: The text.

    Returns:
        Its numbers, by key.

    Raises:
        ValueError: One that we need is missing.
    """
    keys = ("vgpr_count", "vgpr_spill_count", "sgpr_spill_count", "private_segment_fixed_size")
    pattern = re.compile(rf"^\s*\.({'|'.join(keys)}):\s*(\d+)\s*$", re.MULTILINE)
    found = {key: int(value) for key, value in pattern.findall(assembly)}
    if missing := [key for key in keys if key not in found]:
        raise ValueError(f"the assembly lacks {', '.join(missing)}")
    return found


def read(asm: Mapping[str, Any], shared_bytes: int, cuobjdump: Path | None) -> Resources:
    """Read everything.

    Args:
        asm: Stage -> what Triton made at it: `ttir`, and `ptx` and `cubin`, or `amdgcn` and `hsaco`.
        shared_bytes: What Triton asks for at a launch.
        cuobjdump: The tool, for NVIDIA.

    Returns:
        The resources.

    Raises:
        ValueError: Something cannot be read as what it should be.
    """
    unmasked, bounds = masks(asm["ttir"])
    if "cubin" in asm:
        assert cuobjdump is not None
        registers, stack = cuobjdump_usage(_dumped(asm["cubin"], cuobjdump))
        spills, scalar_spills, binary, assembly = stack // 4, 0, asm["cubin"], asm["ptx"]
    else:
        binary, assembly = asm["hsaco"], asm["amdgcn"]
        usage = amd_usage(assembly)
        registers, spills = usage["vgpr_count"], usage["vgpr_spill_count"]
        scalar_spills, stack = usage["sgpr_spill_count"], usage["private_segment_fixed_size"]
    tensor_core, wide_loads = instruction_mix(assembly)
    return Resources(
        registers=registers,
        spills=spills,
        scalar_spills=scalar_spills,
        stack_bytes=stack,
        shared_bytes=shared_bytes,
        code_bytes=code_bytes(binary),
        tensor_core=tensor_core,
        wide_loads=wide_loads,
        unmasked=unmasked,
        bounds=bounds,
    )


def _dumped(cubin: bytes, tool: Path) -> str:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run(  # noqa: S603 - the tool of Triton's own wheel
            [tool, "--dump-resource-usage", file.name], capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise ValueError(f"{tool.name} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout
