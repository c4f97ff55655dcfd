"""SF309: an MLP column lives on one rank."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that do not divide an MLP's width; experts kept whole by expert parallelism are left out."""
    model, ranks = draft.model, draft.tensor_parallel_size
    widths = set(model.mlp_widths)
    if model.expert_width and not draft.enable_expert_parallel:
        widths.add(model.expert_width)
    odd = sorted(width for width in widths if width % ranks)
    if not odd:
        return None
    return f"tensor_parallel_size={ranks} does not divide MLP widths {', '.join(map(str, odd))}"


RULE = Rule(
    code="SF309",
    name="mlp-width-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the widths of the MLPs and experts.",
    why=(
        "The first projection of an MLP is split by its output, the second by its input, so each rank keeps the same "
        "number of inner columns. With `enable_expert_parallel` routed experts stay whole and may have any width."
    ),
    fix="Choose a divisor of the widths.",
    since="0.1.0",
    says=("tensor_parallel_size={} does not divide MLP widths",),
    fields=("parallel.tensor_parallel_size", "parallel.enable_expert_parallel"),
    example=Example("llama-width100", {"tensor_parallel_size": 8}, fix={"tensor_parallel_size": 4}),
    check=check,
    proposals=fewer_ranks,
)
