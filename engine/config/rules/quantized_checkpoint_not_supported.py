"""SF504: weights are read as the checkpoint has them, unquantized."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a checkpoint that is quantized already."""
    found = draft.model.quantization
    if found is None:
        return None
    return f"the checkpoint is quantized ({found.said_by}: {found.method}), which the reference engine does not support"


RULE = Rule(
    code="SF504",
    name="quantized-checkpoint-not-supported",
    summary="Checkpoints that are quantized already are not supported.",
    why="Their tensors are packed in a format of their own; read as plain weights they would be noise.",
    fix="Use the unquantized checkpoint.",
    since="0.1.0",
    says=("the checkpoint is quantized ({}: {}), which the reference engine does not support",),
    fields=("model.architecture",),
    example=Example("llama-fp8", {}, fix=None),
    check=check,
    limit=True,
)
