"""SF307: there is nothing to spread."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse expert parallelism on a model without experts."""
    if not draft.enable_expert_parallel or draft.model.num_experts:
        return None
    return f"enable_expert_parallel=True, but {draft.model.architecture} has no experts"


RULE = Rule(
    code="SF307",
    name="expert-parallel-without-experts",
    summary="`enable_expert_parallel` needs a model with experts.",
    why="Expert parallelism gives each rank some of the experts. A dense model has none.",
    fix="Drop `enable_expert_parallel`.",
    since="0.1.0",
    says=(
        "enable_expert_parallel=True, but {} has no experts",
        "Number of experts in the model must be greater than 0 when expert parallelism is enabled",
    ),
    fields=("parallel.enable_expert_parallel",),
    example=Example("llama", {"enable_expert_parallel": True}, fix={"enable_expert_parallel": None}),
    check=check,
)
