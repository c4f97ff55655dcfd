"""SF402: the kernel needs Ampere or newer."""

from typing import Final

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule

LEAST: Final = (8, 0)


def check(draft: Draft) -> str | None:
    """Refuse `experts_int8` on older CUDA devices."""
    device = draft.device
    if draft.quantization != "experts_int8" or device.type != "cuda" or device.capability is None:
        return None
    if device.capability >= LEAST:
        return None
    have = ".".join(map(str, device.capability))
    return f"quantization=experts_int8 needs compute capability 8.0; {device.name} has {have}"


RULE = Rule(
    code="SF402",
    name="experts-int8-below-compute-capability-8",
    summary="`experts_int8` needs compute capability 8.0 on CUDA.",
    why="The fused expert kernel with 8-bit weights is written for Ampere and newer.",
    fix="Drop `quantization`, or choose a newer device.",
    since="0.1.0",
    says=(
        "quantization=experts_int8 needs compute capability 8.0",
        "The quantization method experts_int8 is not supported for the current GPU",
    ),
    fields=("quantization.method",),
    example=Example(
        "jamba", {"quantization": "experts_int8", "dtype": "float16"}, device="volta", fix={"quantization": None}
    ),
    check=check,
)
