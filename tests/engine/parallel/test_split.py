"""Which part of a tensor each rank holds: all parts together are the tensor."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.parallel.cut import cut
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.parallel.split import heads, kv_part, part, vocabulary_part

pytestmark = pytest.mark.engine


@dataclass
class Rank:
    rank: int
    size: int

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError


def ranks(size: int) -> list[Rank]:
    return [Rank(rank, size) for rank in range(size)]


@given(size=st.integers(2, 8), share=st.integers(1, 5), stacked=st.integers(1, 3), dim=st.integers(0, 1))
def test_even_parts_laid_side_by_side_are_the_whole(size: int, share: int, stacked: int, dim: int):
    total = size * share * stacked
    whole = torch.arange(3 * total).view(*(total, 3)[:: 1 - 2 * dim])
    parts = []
    for rank in ranks(size):
        mine = part(dim, total, rank, stacked=stacked)
        assert mine is not None
        parts.append(cut(whole, mine))
    # Tensor by tensor of the stack, rank by rank.
    pieces = [piece.chunk(stacked, dim) for piece in parts]
    assert torch.equal(torch.cat([piece[n] for n in range(stacked) for piece in pieces], dim), whole)


def test_a_group_of_one_takes_whole_tensors():
    assert part(0, 7, SINGLE) is None
    assert kv_part(3, 8, SINGLE) is None


def test_sizes_that_no_rule_let_through_are_not_rounded():
    with pytest.raises(AssertionError, match="2 ranks do not divide 7"):
        part(0, 7, Rank(0, 2))


@given(kv=st.integers(1, 6), groups=st.integers(1, 4), factor=st.integers(1, 4), copies=st.booleans())
def test_a_rank_holds_the_keys_that_its_queries_attend_to(kv: int, groups: int, factor: int, copies: bool):
    """Expectation by the definition of grouped-query attention: query h attends to key/value head h // groups."""
    size = kv * factor if copies else kv
    query, head_dim = kv * groups * factor, 2
    keys = torch.arange(kv).repeat_interleave(head_dim)
    for rank in ranks(size):
        mine = heads(query, kv, head_dim, rank)
        part_of_keys = kv_part(kv, head_dim, rank)
        held = keys if part_of_keys is None else cut(keys, part_of_keys)
        assert len(held) == mine.kv * head_dim
        for local in range(mine.query):
            whole = rank.rank * mine.query + local
            assert held[local // (mine.query // mine.kv) * head_dim] == whole // (query // kv)


@given(vocabulary=st.integers(1, 50), size=st.integers(1, 8))
def test_every_token_is_one_ranks_and_all_keep_as_many_rows(vocabulary: int, size: int):
    found = [vocabulary_part(vocabulary, rank) for rank in ranks(size)]
    assert [token for mine in found for token in range(mine.start, mine.stop)] == list(range(vocabulary))
    assert len({mine.rows for mine in found}) == 1
    assert all(0 <= mine.stop - mine.start <= mine.rows for mine in found)
