"""SF313: external balancing over several engines is for models with experts."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse external balancing of several engines whose model has no experts."""
    external = draft.data_parallel_external_lb or draft.data_parallel_rank is not None
    if draft.data_parallel_size < 2 or not external or draft.model.num_experts:
        return None
    return (
        f"data_parallel_size={draft.data_parallel_size} under external balancing, but {draft.model.architecture} "
        "has no experts"
    )


RULE = Rule(
    code="SF313",
    name="external-balancing-without-experts",
    summary="In vLLM, external balancing over several engines needs a model with experts.",
    why=(
        "Engines of one data-parallel group step together because they share experts. Without experts nothing joins "
        "them, and vLLM wants them started as engines of their own; the reference engine takes both."
    ),
    fix="Start independent engines, or drop `data_parallel_rank` and `data_parallel_external_lb`.",
    since="0.1.0",
    says=(
        "under external balancing, but {} has no experts",
        "Non-MoE models do not support external data parallel mode",
    ),
    fields=(
        "parallel.data_parallel_size",
        "parallel.data_parallel_rank",
        "parallel.data_parallel_external_lb",
    ),
    example=Example(
        "llama",
        {"data_parallel_size": 2, "data_parallel_rank": 1, "enable_multiprocessing": True},
        fix={"data_parallel_rank": None},
        release="vllm==0.33.0",
    ),
    check=check,
    holds=lambda release: release.external_balancing_needs_experts,
)
