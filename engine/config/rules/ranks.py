"""Repairs that the parallel rules share."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.draft import Draft


def fewer_ranks(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Propose the divisors of the typed `tensor_parallel_size`, largest first; the search verifies them."""
    ranks = draft.tensor_parallel_size
    for fewer in range(ranks // 2, 0, -1):
        if ranks % fewer == 0:
            yield {"tensor_parallel_size": fewer}
