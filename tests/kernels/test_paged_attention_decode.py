"""Decodes are attended in groups of like length, and their index lists go on in place."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staticfire.kernels.paged_attention import advance, make_metadata, paged_attention
from staticfire.kernels.paged_attention import metadata as implementation
from staticfire.kernels.reshape_and_cache import make_metadata as write_metadata

pytestmark = pytest.mark.engine

BLOCK, HEADS, SIZE = 4, 2, 8


def scene(lengths: list[int], seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(cache full of NaN but for the sequences' own positions and 20 more, tables, queries), in float64."""
    generator = torch.Generator().manual_seed(seed)
    per_sequence = -(-(max(lengths) + 20) // BLOCK)
    blocks = torch.randperm(len(lengths) * per_sequence, generator=generator).view(len(lengths), per_sequence) + 1
    cache = torch.full((int(blocks.max()) + 2, 2, BLOCK, HEADS, SIZE), torch.nan, dtype=torch.float64)
    for row, length in enumerate(lengths):
        for position in range(length):
            values = torch.randn(2, HEADS, SIZE, generator=generator, dtype=torch.float64)
            cache[blocks[row, position // BLOCK], :, position % BLOCK] = values
    q = torch.randn(len(lengths), HEADS * 2, SIZE, generator=generator, dtype=torch.float64)
    return cache, blocks, q


def reference(cache: torch.Tensor, blocks: torch.Tensor, q: torch.Tensor, lengths: list[int]) -> torch.Tensor:
    cu = torch.arange(len(lengths) + 1)
    return paged_attention(q, cache, blocks, cu, torch.tensor(lengths), 0.3, backend="reference")


@given(
    st.lists(st.integers(1, 90), min_size=1, max_size=9), st.sampled_from([0, 64, 1 << 9, 1 << 15]), st.integers(0, 9)
)
def test_groups_of_any_number_agree_with_the_reference(lengths: list[int], padding: int, seed: int):
    cache, blocks, q = scene(lengths, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "SPLIT_ELEMENTS", padding)
        made = make_metadata(cache, blocks, torch.arange(len(lengths) + 1), torch.tensor(lengths), q.dtype)
    if padding == 0:
        assert len(made.decodes) == len(set(lengths))
    assert sum(group.size for group in made.decodes) == len(lengths)
    got = paged_attention(q, cache, blocks, torch.arange(len(lengths) + 1), torch.tensor(lengths), 0.3, metadata=made)
    torch.testing.assert_close(got, reference(cache, blocks, q, lengths), rtol=0, atol=1e-13)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.sampled_from([0, 1 << 15]), st.integers(0, 9))
def test_lists_that_advance_agree_with_the_reference(lengths: list[int], padding: int, seed: int):
    cache, blocks, q = scene(lengths, seed)
    generator = torch.Generator().manual_seed(seed + 100)
    cu = torch.arange(len(lengths) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "SPLIT_ELEMENTS", padding)
        made = make_metadata(cache, blocks, cu, torch.tensor(lengths), q.dtype)
    steps = 0
    while True:
        slots = torch.tensor([int(blocks[row, n // BLOCK]) * BLOCK + n % BLOCK for row, n in enumerate(lengths)])
        writes = write_metadata(slots, cache)
        if not advance(made, writes.key_rows, writes.value_rows):
            break
        for row, length in enumerate(lengths):
            new = torch.randn(2, HEADS, SIZE, generator=generator, dtype=torch.float64)
            cache[blocks[row, length // BLOCK], :, length % BLOCK] = new
        lengths = [length + 1 for length in lengths]
        steps += 1
        got = paged_attention(q, cache, blocks, cu, torch.tensor(lengths), 0.3, metadata=made)
        torch.testing.assert_close(got, reference(cache, blocks, q, lengths), rtol=0, atol=1e-13)
    assert steps == implementation.STEP


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.lists(st.lists(st.sampled_from([0, 1]), max_size=3), min_size=1, max_size=8),
    st.sampled_from([0, 5_000, 1 << 20]),
    st.integers(0, 9),
)
def test_layers_that_share_lists_agree_with_the_reference(
    lengths: list[int], calls: list[list[int]], room: int, seed: int
):
    """Two layers, each computed never, once or again in a step, with room for the rows of neither, one or both."""
    (first, blocks, q), (second, _, _) = scene(lengths, seed), scene(lengths, seed)
    layers = [first, second.mul_(-0.5)]
    generator = torch.Generator().manual_seed(seed + 100)
    cu = torch.arange(len(lengths) + 1)
    made = make_metadata(first, blocks, cu, torch.tensor(lengths), q.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(implementation, "KEPT_BYTES", room)
        for order in calls:
            for layer in order:
                got = paged_attention(q, layers[layer], blocks, cu, torch.tensor(lengths), 0.3, metadata=made)
                wanted = reference(layers[layer], blocks, q, lengths)
                torch.testing.assert_close(got, wanted, rtol=0, atol=1e-13)
            slots = torch.tensor([int(blocks[row, n // BLOCK]) * BLOCK + n % BLOCK for row, n in enumerate(lengths)])
            writes = write_metadata(slots, first)
            assert advance(made, writes.key_rows, writes.value_rows)
            for row, length in enumerate(lengths):
                for cache in layers:
                    new = torch.randn(2, HEADS, SIZE, generator=generator, dtype=torch.float64)
                    cache[blocks[row, length // BLOCK], :, length % BLOCK] = new
            lengths = [length + 1 for length in lengths]
    assert made.room is not None
    assert made.room.kept_bytes == sum(kept.buffer.nbytes for kept in made.room.kept.values()) <= room


def test_a_step_that_goes_on_reads_nothing_but_the_last_position():
    lengths = [5, 9]
    cache, blocks, q = scene(lengths, 0)
    cu = torch.arange(3)
    made = make_metadata(cache, blocks, cu, torch.tensor(lengths), q.dtype)
    paged_attention(q, cache, blocks, cu, torch.tensor(lengths), 0.3, metadata=made)
    slots = torch.tensor([int(blocks[row, n // BLOCK]) * BLOCK + n % BLOCK for row, n in enumerate(lengths)])
    writes = write_metadata(slots, cache)
    advance(made, writes.key_rows, writes.value_rows)
    for row, length in enumerate(lengths):
        cache[blocks[row, length // BLOCK], :, length % BLOCK] = 0.5
    wanted = reference(cache, blocks, q, [6, 10])
    for row, length in enumerate(lengths):
        for position in range(length):
            cache[blocks[row, position // BLOCK], :, position % BLOCK] = torch.nan
    got = paged_attention(q, cache, blocks, cu, torch.tensor([6, 10]), 0.3, metadata=made)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-13)


def test_prefills_do_not_advance():
    cache, blocks, _ = scene([5], 0)
    made = make_metadata(cache, blocks, torch.tensor([0, 3]), torch.tensor([5]), torch.float64)
    assert not advance(made, torch.tensor([0]), torch.tensor([1]))
