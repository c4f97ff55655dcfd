"""SF507: the reference engine does not share layers out."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse several pipeline stages; more stages than layers are refused by their own rule."""
    stages = draft.pipeline_parallel_size
    if stages == 1 or stages > len(draft.model.layers):
        return None
    return f"pipeline_parallel_size={stages}: the reference engine runs every layer on every rank"


RULE = Rule(
    code="SF507",
    name="pipeline-parallel-not-supported",
    summary="`pipeline_parallel_size` above 1 is not supported.",
    why=(
        "A stage may hold recurrent layers only, and then has no attention layer to align its blocks to. The "
        "reference engine spreads a model by tensor and data parallelism."
    ),
    fix="Leave `pipeline_parallel_size` out; `tensor_parallel_size` spreads a model, too.",
    since="0.1.0",
    says=(
        "pipeline_parallel_size={}: the reference engine runs every layer on every rank",
        "Pipeline parallelism is not supported for this model",
    ),
    fields=("parallel.pipeline_parallel_size",),
    example=Example("llama", {"pipeline_parallel_size": 2}, fix={"pipeline_parallel_size": None}),
    check=check,
    holds=lambda release: not release.has_stages,
)
