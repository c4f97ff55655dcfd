"""The tensors of a step, against a plain computation from the chunks; steady decoding against starting afresh."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from staticfire.engine.cache.spec import AttentionSpec, CacheGroup, CacheLayout, MambaSpec
from staticfire.engine.layers.batch import AttentionBatch, ForwardBatch, RecurrentBatch
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput
from staticfire.engine.worker.cache import CacheBuffers
from staticfire.engine.worker.inputs import InputBuilder

pytestmark = pytest.mark.engine

SIZE, BLOCKS = 4, 400
PARAMS = SamplingParams()


def caches() -> CacheBuffers:
    attention = AttentionSpec(SIZE, 2, 4, "float32", 512)
    mamba = MambaSpec(SIZE, ((6, 3), (6, 8)), ("float32", "float32"), "align", 512)
    groups = (
        CacheGroup((1,), attention),
        CacheGroup((3,), attention),
        CacheGroup((0,), mamba),
        CacheGroup((2,), mamba),
    )
    return CacheBuffers(CacheLayout(groups, BLOCKS, 1, 512))


def chunk(name: int, start: int, length: int) -> ScheduledChunk:
    """Request `name` owns blocks 1 + 40 name ...: its tables are known without an allocator."""
    end = start + length
    first = 1 + 40 * name
    tables = [list(range(first, first - (-end // SIZE))), list(range(first + 20, first + 20 - (-end // SIZE)))]
    states = (first + 38, first + 39 - (end % 2))
    return ScheduledChunk(
        request_id=str(name),
        token_ids=[(7 * name + position) % 50 for position in range(start, end)],
        start=start,
        block_ids=(*tables, [states[0]], [states[1]]),
        state_blocks=states,
        samples=True,
        sampling_params=PARAMS,
        num_prompt_tokens=1,
    )


def check(batch: ForwardBatch, chunks: list[ScheduledChunk]) -> None:
    """Everything the layers read, token by token."""
    assert batch.token_ids.tolist() == [token for chunk in chunks for token in chunk.token_ids]
    positions = [chunk.start + i for chunk in chunks for i in range(len(chunk.token_ids))]
    assert batch.positions.tolist() == positions
    ends = [chunk.start + len(chunk.token_ids) for chunk in chunks]
    assert batch.seq_lens.tolist() == ends
    assert [b - a for a, b in pairwise(batch.cu_seqlens.tolist())] == [len(chunk.token_ids) for chunk in chunks]
    assert batch.one_token_each == all(len(chunk.token_ids) == 1 for chunk in chunks)
    for number in (0, 1):
        group = batch.groups[number]
        assert isinstance(group, AttentionBatch)
        slots = [
            chunk.block_ids[number][position // SIZE] * SIZE + position % SIZE
            for chunk in chunks
            for position in range(chunk.start, chunk.start + len(chunk.token_ids))
        ]
        assert group.slot_mapping.tolist() == slots
        pages = group.writes.pages
        keys = [slot // SIZE * pages.block + slot % SIZE for slot in slots]
        assert group.writes.key_rows.tolist() == keys
        assert group.writes.value_rows.tolist() == [key + pages.plane for key in keys]
        for row, chunk in enumerate(chunks):
            used = -(-ends[row] // SIZE)
            assert group.block_tables[row, :used].tolist() == chunk.block_ids[number][:used]
    for index, number in enumerate((2, 3)):
        recurrent = batch.groups[number]
        assert isinstance(recurrent, RecurrentBatch)
        assert recurrent.state_indices.tolist() == [chunk.state_blocks[index] for chunk in chunks]
        assert recurrent.slots.indices.tolist() == recurrent.state_indices.tolist()
        assert recurrent.has_initial_state.tolist() == [chunk.start > 0 for chunk in chunks]
        assert (recurrent.scan is None) == batch.one_token_each


def check_reads(batch: ForwardBatch, chunks: list[ScheduledChunk]) -> None:
    """The rows that each decode attends to, in order, and nothing else unmasked."""
    for number in (0, 1):
        group = batch.groups[number]
        assert isinstance(group, AttentionBatch)
        seen = set()
        for part in group.reads.decodes:
            owners = range(part.size) if part.tokens is None else part.tokens.tolist()
            rows = part.rows.view(2, part.size, -1)
            assert part.mask is not None
            for i, owner in enumerate(owners):
                end = chunks[owner].start + 1
                table = chunks[owner].block_ids[number]
                wanted = [table[p // SIZE] * group.writes.pages.block + p % SIZE for p in range(end)]
                assert rows[0, i, :end].tolist() == wanted
                assert rows[1, i, :end].tolist() == [row + group.writes.pages.plane for row in wanted]
                assert part.mask[i, 0, 0].tolist() == [0.0] * end + [-torch.inf] * (rows.shape[2] - end)
                seen.add(owner)
        assert seen == set(range(len(chunks)))


def output(chunks: list[ScheduledChunk]) -> SchedulerOutput:
    return SchedulerOutput(step=0, chunks=tuple(chunks))


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), min_size=1, max_size=6)


@given(spans)
def test_any_mixture_of_chunks(spans: list[tuple[int, int]]):
    chunks = [chunk(name, start, length) for name, (start, length) in enumerate(spans)]
    check(InputBuilder(caches(), torch.float32).build(output(chunks)), chunks)


@given(
    st.lists(st.integers(0, 25), min_size=1, max_size=6),
    st.lists(st.sampled_from(["on", "on", "on", "on", "on", "leave", "jump", "prefill", "swap"]), max_size=30),
)
def test_steady_decoding_builds_what_a_fresh_start_builds(starts: list[int], events: list[str]):
    """Requests decode on; now and then one leaves, misses a step, is prefilled in the same step, or changes places."""
    builder = InputBuilder(caches(), torch.float32)
    live = dict(enumerate(starts))
    for event in events:
        if event == "leave" and len(live) > 1:
            del live[next(iter(live))]
        if event == "swap":
            live = dict(reversed(live.items()))
        if max(live.values()) > 60:
            break
        chunks = [chunk(name, start, 1) for name, start in live.items()]
        if event == "jump":
            chunks = chunks[1:] or chunks
        if event == "prefill":
            chunks.append(chunk(8, 0, 9))
        batch = builder.build(output(chunks))
        check(batch, chunks)
        if batch.one_token_each:
            check_reads(batch, chunks)
        for done in chunks:
            if done.request_id != "8":
                live[int(done.request_id)] = done.start + 1


def test_an_id_that_comes_back_is_another_request():
    builder = InputBuilder(caches(), torch.float32)
    builder.build(output([chunk(0, 7, 1)]))
    moved = replace(chunk(1, 8, 1), request_id="0")
    batch = builder.build(SchedulerOutput(step=1, chunks=(moved,), finished=("0",)))
    assert not batch.continued
    check(batch, [moved])


def test_a_steady_step_is_recognised():
    builder = InputBuilder(caches(), torch.float32)
    flags = [builder.build(output([chunk(0, n, 1), chunk(1, n + 3, 1)])).continued for n in range(5, 12)]
    assert flags == [False, *[True] * 6]
