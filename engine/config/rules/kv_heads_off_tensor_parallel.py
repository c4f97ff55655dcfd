"""SF302: key/value heads are split evenly or copied evenly."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule
from staticfire.engine.config.rules.ranks import fewer_ranks


def check(draft: Draft) -> str | None:
    """Refuse ranks that neither divide the KV heads nor are a multiple of them."""
    heads, ranks = draft.model.num_kv_heads, draft.tensor_parallel_size
    if not heads or heads % ranks == 0 or ranks % heads == 0:
        return None
    return f"tensor_parallel_size={ranks} neither divides {heads} key/value heads nor is a multiple of them"


RULE = Rule(
    code="SF302",
    name="kv-heads-off-tensor-parallel",
    summary="`tensor_parallel_size` must divide the key/value heads or be a multiple of them.",
    why=(
        "With fewer ranks than heads each rank keeps the same number of heads; with more, each head is copied to the "
        "same number of ranks. Anything between leaves ranks with different caches."
    ),
    fix="Choose a divisor or a multiple of the number of key/value heads.",
    since="0.1.0",
    says=(
        "tensor_parallel_size={} neither divides {} key/value heads nor is a multiple",
        "assert self.total_num_kv_heads % tp_size == 0",
        "assert tp_size % self.total_num_kv_heads == 0",
    ),
    fields=("parallel.tensor_parallel_size",),
    example=Example("llama-kv6", {"tensor_parallel_size": 4}, fix={"tensor_parallel_size": 2}),
    check=check,
    proposals=fewer_ranks,
    breaks_runtime=True,
)
