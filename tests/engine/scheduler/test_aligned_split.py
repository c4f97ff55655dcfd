import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from staticfire.engine.scheduler.aligned_split import aligned_length


def split(prompt: int, block: int, budget: int, *, start: int = 0, outputs: int = 0, junction: int = 0) -> list[int]:
    """Chunk ends of a request that has every step to itself, up to its last known token."""
    ends, total = [], prompt + outputs
    while start < total:
        length = aligned_length(
            start=start,
            proposed=min(total - start, budget),
            num_prompt_tokens=prompt,
            num_tokens=total,
            block_size=block,
            max_chunk=budget,
            junction=junction,
        )
        assert length > 0, "a request alone must advance"
        start += length
        ends.append(start)
    return ends


@pytest.mark.parametrize(
    ("prompt", "block", "budget", "ends"),
    [
        # within one block: nothing to keep but the end
        (1, 16, 64, [1]),
        (15, 16, 64, [15]),
        (16, 16, 64, [16]),
        # the last boundary before the end is kept, so the same prompt can start there
        (17, 16, 64, [16, 17]),
        (31, 16, 64, [16, 31]),
        (32, 16, 64, [16, 32]),
        (33, 16, 64, [32, 33]),
        (48, 16, 64, [32, 48]),
        (49, 16, 64, [48, 49]),
        # a budget that is no multiple of the block is rounded down
        (100, 16, 40, [32, 64, 96, 100]),
        (100, 16, 16, [16, 32, 48, 64, 80, 96, 100]),
        (96, 16, 48, [48, 80, 96]),
        (97, 16, 48, [48, 96, 97]),
        (95, 16, 48, [48, 80, 95]),
        # a budget below the block goes on inside it, and stops at every boundary
        (40, 16, 10, [10, 16, 26, 32, 40]),
        (33, 16, 15, [15, 16, 31, 32, 33]),
        (20, 16, 1, list(range(1, 21))),
        (2097, 2096, 2048, [2048, 2096, 2097]),
        (364, 1600, 364, [364]),
        (2002, 1600, 364, [364, 728, 1092, 1456, 1600, 1964, 2002]),
    ],
)
def test_chunk_ends(prompt, block, budget, ends):
    assert split(prompt, block, budget) == ends


def test_a_chunk_that_reaches_no_boundary_waits_if_a_later_step_can():
    args = {"start": 16, "num_prompt_tokens": 100, "num_tokens": 100, "block_size": 16, "max_chunk": 64, "junction": 0}
    assert aligned_length(proposed=15, **args) == 0
    assert aligned_length(proposed=16, **args) == 16
    assert aligned_length(proposed=31, **args) == 16


def test_decoding_is_never_cut():
    args = {"proposed": 1, "num_prompt_tokens": 40, "block_size": 16, "max_chunk": 64, "junction": 0}
    assert aligned_length(start=47, num_tokens=48, **args) == 1
    assert aligned_length(start=48, num_tokens=49, **args) == 1


def test_replay_keeps_the_boundaries_of_prompt_and_output():
    assert split(20, 16, 64, outputs=30) == [16, 48, 50]
    assert split(32, 16, 64, outputs=30) == [16, 32, 48, 62]


def test_junction_is_a_stop():
    assert split(100, 16, 256, junction=48) == [48, 96, 100]
    assert split(100, 16, 256, start=48, junction=48) == [96, 100]


LENGTHS = st.integers(1, 200)


@given(prompt=LENGTHS, outputs=st.integers(0, 40), block=st.integers(1, 40), budget=st.integers(1, 250), data=st.data())
def test_laws_of_the_split(prompt, outputs, block, budget, data):
    total = prompt + outputs
    start = data.draw(st.integers(0, total - 1))
    junction = data.draw(st.integers(0, total // block)) * block
    ends = split(prompt, block, budget, start=start, outputs=outputs, junction=junction)
    assert ends[-1] == total
    lengths = [end - begin for begin, end in zip([start, *ends], ends, strict=False)]
    assert all(0 < length <= budget for length in lengths)
    prefill = [(begin, end) for begin, end in zip([start, *ends], ends, strict=False) if begin < max(prompt, total - 1)]
    must = {(total - 1) // block * block, total // block * block, (prompt - 1) // block * block, junction}
    for begin, end in prefill:
        assert not any(begin < stop < end for stop in must), "a state worth keeping was run over"
        if begin % block:
            assert end <= (begin // block + 1) * block, "the state at the next boundary was run over"
        if end != total and budget >= block:
            assert end % block == 0, "a chunk ends inside a block although every step can reach a boundary"


@given(prompt=LENGTHS, block=st.integers(1, 40), proposed=st.integers(1, 200), max_chunk=st.integers(1, 250))
def test_waiting_needs_a_reason(prompt, block, proposed, max_chunk):
    assume(proposed <= min(prompt, max_chunk))
    length = aligned_length(
        start=0,
        proposed=proposed,
        num_prompt_tokens=prompt,
        num_tokens=prompt,
        block_size=block,
        max_chunk=max_chunk,
        junction=0,
    )
    assert (length == 0) == (proposed < block <= max_chunk and proposed < prompt)
