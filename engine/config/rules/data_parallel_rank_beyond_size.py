"""SF311: a rank is one of the engines."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a rank that no engine has."""
    rank, size = draft.data_parallel_rank, draft.data_parallel_size
    if rank is None or rank < size:
        return None
    return f"data_parallel_rank={rank}, but data_parallel_size={size} engines are counted from 0"


RULE = Rule(
    code="SF311",
    name="data-parallel-rank-beyond-size",
    summary="`data_parallel_rank` must be below `data_parallel_size`.",
    why="Ranks are counted from 0. The front end of rank 0 waits for every rank below the size and for no other.",
    fix="Choose a smaller rank, or a larger `data_parallel_size` on every rank.",
    since="0.1.0",
    says=(
        "data_parallel_rank={}, but data_parallel_size={} engines are counted from 0",
        "data_parallel_rank ({}) must be in the range [0, {})",
    ),
    fields=("parallel.data_parallel_rank", "parallel.data_parallel_size"),
    example=Example("llama", {"data_parallel_size": 2, "data_parallel_rank": 2}, fix={"data_parallel_rank": 1}),
    check=check,
    proposals=lambda draft: ({"data_parallel_rank": draft.data_parallel_size - 1},),
)
