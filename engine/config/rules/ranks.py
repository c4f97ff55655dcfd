"""Repairs that the parallel rules share."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from staticfire.engine.config.draft import Draft

MOST_RANKS: Final = 4096
"""More ranks than one model is split over; a repair with more is not looked for."""


def fewer_ranks(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Propose the divisors of the typed `tensor_parallel_size`, largest first; the search verifies them."""
    ranks = draft.tensor_parallel_size
    for fewer in range(min(ranks // 2, MOST_RANKS), 0, -1):
        if ranks % fewer == 0:
            yield {"tensor_parallel_size": fewer}
