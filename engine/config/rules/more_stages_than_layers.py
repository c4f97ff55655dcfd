"""SF308: a pipeline stage needs a layer."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse empty pipeline stages."""
    layers, stages = len(draft.model.layers), draft.pipeline_parallel_size
    return f"pipeline_parallel_size={stages} stages for {layers} layers" if stages > layers else None


RULE = Rule(
    code="SF308",
    name="more-stages-than-layers",
    summary="`pipeline_parallel_size` must not exceed the number of layers.",
    why="Stages share the layers. A stage without a layer would pass on what it gets, for the price of a device.",
    fix="Choose fewer stages.",
    since="0.1.0",
    says=("pipeline_parallel_size={} stages for {} layers",),
    fields=("parallel.pipeline_parallel_size",),
    example=Example("llama", {"pipeline_parallel_size": 5}, fix={"pipeline_parallel_size": None}),
    check=check,
    breaks_runtime=True,
)
