"""SF404: older CUDA devices do not compute bfloat16."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.settle_model import computes_bfloat16


def check(draft: Draft) -> str | None:
    """Refuse bfloat16 where the device has none."""
    if draft.dtype != "bfloat16" or computes_bfloat16(draft.device):
        return None
    return f"dtype=bfloat16 needs compute capability 8.0, which {draft.device.name} has not"


RULE = Rule(
    code="SF404",
    name="bfloat16-below-compute-capability-8",
    summary="`dtype=bfloat16` needs compute capability 8.0 on CUDA.",
    why="Devices before Ampere have no bfloat16 arithmetic. Left at `auto`, the dtype falls to float16 there.",
    fix="Set `dtype=float16`, or leave it at `auto`.",
    since="0.1.0",
    says=(
        "dtype=bfloat16 needs compute capability 8.0",
        "Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
    ),
    fields=("model.dtype",),
    example=Example("jamba", {"dtype": "bfloat16"}, device="volta", fix={"dtype": None}),
    check=check,
)
