"""SF403: on a GPU the kernel takes 16-bit activations."""

from typing import Final

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule

ACTIVATIONS: Final = ("float16", "bfloat16")


def check(draft: Draft) -> str | None:
    """Refuse `experts_int8` with wide activations where a GPU kernel would take them."""
    if draft.quantization != "experts_int8" or draft.device.type == "cpu" or draft.dtype in ACTIVATIONS:
        return None
    return f"quantization=experts_int8 on {draft.device.name} takes float16 or bfloat16, not dtype={draft.dtype}"


RULE = Rule(
    code="SF403",
    name="experts-int8-beside-wide-activations",
    summary="On a GPU, `experts_int8` needs `dtype` float16 or bfloat16.",
    why=(
        "The GPU kernel multiplies 16-bit activations with widened 8-bit weights. On a CPU the reference engine "
        "computes it in any dtype."
    ),
    fix="Set `dtype` to bfloat16 or float16, or drop `quantization`.",
    since="0.1.0",
    says=(
        "quantization=experts_int8 on {} takes float16 or bfloat16",
        "is not supported for quantization method experts_int8. Supported dtypes",
    ),
    fields=(
        "quantization.method",
        "model.dtype",
    ),
    example=Example(
        "jamba", {"quantization": "experts_int8", "dtype": "float32"}, device="ampere", fix={"dtype": "bfloat16"}
    ),
    check=check,
)
