"""Which part of a tensor a rank holds: arithmetic only.

The split is that of Megatron-LM (Shoeybi et al. 2019, section 3), as in vLLM: the first matrix of a pair is split by
its output, the second by its input, and their product is summed over the ranks once.
"""

from typing import NamedTuple

from staticfire.engine.parallel.base import Group


class Part(NamedTuple):
    """Some slices of one dimension, one after the other.

    Attributes:
        dim: Which dimension.
        ranges: [start, stop) of each slice.
    """

    dim: int
    ranges: tuple[tuple[int, int], ...]


def part(dim: int, size: int, group: Group, *, stacked: int = 1) -> Part | None:
    """This rank's even share of a dimension; None, the whole tensor, in a group of one.

    Args:
        dim: Which dimension.
        size: Its size; the rules of the configuration have made sure that the ranks divide it.
        group: This rank and the others.
        stacked: Tensors of equal size that lie one after the other in this dimension; each is split.
    """
    if group.size == 1:
        return None
    each, share = size // stacked, size // stacked // group.size
    assert share * group.size * stacked == size, f"{group.size} ranks do not divide {size}"
    start = group.rank * share
    return Part(dim, tuple((n * each + start, n * each + start + share) for n in range(stacked)))


class Heads(NamedTuple):
    """Attention heads of one rank."""

    query: int
    kv: int
    head_dim: int


def heads(query: int, kv: int, head_dim: int, group: Group) -> Heads:
    """This rank's heads; with more ranks than key/value heads, ranks share one and each keeps a copy."""
    return Heads(query // group.size, max(1, kv // group.size), head_dim)


def kv_part(kv: int, head_dim: int, group: Group) -> Part | None:
    """This rank's rows of a projection to keys or values."""
    if group.size <= kv:
        return part(0, kv * head_dim, group)
    head = group.rank // (group.size // kv)
    return Part(0, ((head * head_dim, (head + 1) * head_dim),))


class VocabularyPart(NamedTuple):
    """A rank's rows of the embedding and of the output matrix.

    Attributes:
        start: Its first token.
        stop: The token after its last one.
        rows: Rows that it keeps, equal on all ranks; those past `stop - start` are zero and stand for no token.
    """

    start: int
    stop: int
    rows: int


def vocabulary_part(vocabulary: int, group: Group) -> VocabularyPart:
    """This rank's tokens. The vocabulary is padded where the ranks do not divide it."""
    rows = -(-vocabulary // group.size)
    start = min(group.rank * rows, vocabulary)
    return VocabularyPart(start, min(start + rows, vocabulary), rows)
