"""One prefix hit for all cache groups together. Imports no torch."""

from collections.abc import Sequence
from typing import NamedTuple

from staticfire.engine.cache.base import CacheGroupManager


class Hit(NamedTuple):
    """Where a request can start.

    Attributes:
        num_tokens: Leading tokens that every group can go on from; a multiple of the block size.
        blocks: One table per group, up to `num_tokens`; nothing in it is held yet.
        junction: Where the attention hit ended if it is longer than `num_tokens`, else 0. A state kept there would
            have saved the difference, so the request stops there once, for those that come after it.
    """

    num_tokens: int
    blocks: tuple[list[int], ...]
    junction: int


def find_hit(managers: Sequence[CacheGroupManager], hashes: Sequence[bytes], max_tokens: int) -> Hit:
    """Find the longest prefix, at most `max_tokens` tokens, that every group can go on from.

    Each group shortens what the others left until none does; a group's answer only shrinks with its limit, so this
    ends in the greatest common fixed point.

    Args:
        managers: The groups, attention groups first.
        hashes: Hash chain of the request's full blocks.
        max_tokens: Cap; one less than the request's tokens, since the last one must be computed to sample.
    """
    first = num_tokens = managers[0].longest_hit(hashes, max_tokens)
    while num_tokens:
        before = num_tokens
        for manager in managers:
            num_tokens = manager.longest_hit(hashes, num_tokens)
        if num_tokens == before:
            break
    blocks = tuple(manager.hit_blocks(hashes, num_tokens) for manager in managers)
    return Hit(num_tokens, blocks, first if first > num_tokens else 0)


def no_hit(managers: Sequence[CacheGroupManager]) -> Hit:
    """Return the hit of a request that starts from nothing."""
    return Hit(0, tuple([] for _ in managers), 0)
