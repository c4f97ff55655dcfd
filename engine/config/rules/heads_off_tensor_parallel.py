"""SF301: a query head lives on one rank."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that do not divide the query heads."""
    heads, ranks = draft.model.num_attention_heads, draft.tensor_parallel_size
    if heads % ranks == 0:
        return None
    return f"tensor_parallel_size={ranks} does not divide {heads} attention heads"


RULE = Rule(
    code="SF301",
    name="heads-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the attention heads.",
    why="Each rank computes whole query heads; a head cannot be split between two ranks.",
    fix="Choose a divisor of the number of heads.",
    since="0.1.0",
    says=(
        "tensor_parallel_size={} does not divide {} attention heads",
        "Total number of attention heads ({}) must be divisible by tensor parallel size ({})",
    ),
    fields=("parallel.tensor_parallel_size",),
    example=Example("llama", {"tensor_parallel_size": 16}, fix={"tensor_parallel_size": 8}),
    check=check,
    proposals=fewer_ranks,
    breaks_runtime=True,
)
