"""SF401: the method quantizes experts and nothing else."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse `experts_int8` on a model without experts."""
    if draft.quantization != "experts_int8" or draft.model.num_experts:
        return None
    return f"quantization=experts_int8 would quantize nothing: {draft.model.architecture} has no experts"


RULE = Rule(
    code="SF401",
    name="experts-int8-without-experts",
    summary="`experts_int8` needs a model with experts.",
    why=(
        "The method turns the weights of routed experts into 8-bit integers and leaves every other layer alone. On a "
        "dense model it would change nothing while its name says otherwise."
    ),
    fix="Drop `quantization`.",
    since="0.1.0",
    says=("quantization=experts_int8 would quantize nothing",),
    fields=("quantization.method",),
    example=Example("llama", {"quantization": "experts_int8"}, fix={"quantization": None}),
    check=check,
    holds=lambda release: release.refuses_idle_options,
)
