"""Repairs that the parallel rules share."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from staticfire.engine.config.draft import Draft

NODES: Final = (2, 4, 8, 16)
"""Devices of a node, where fewer than were typed leave no room for the weights."""
MOST_RANKS: Final = 4096
"""More ranks than one model is split over; a repair with more is not looked for."""


def fewer_ranks(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Propose sizes that divide the query heads: the largest below the typed one first, then those of larger nodes.

    A model without attention has no such heads, and gets the divisors of the typed size. The search verifies them.
    """
    ranks, heads = draft.tensor_parallel_size, draft.model.num_attention_heads
    for fewer in range(min(ranks - 1, MOST_RANKS), 0, -1):
        if (heads or ranks) % fewer == 0:
            yield {"tensor_parallel_size": fewer}
    for more in NODES:
        if more > ranks and heads and heads % more == 0:
            yield {"tensor_parallel_size": more}
