"""From one step's chunks to the tensors that every layer shares."""

from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from staticfire.engine.layers.batch import AttentionBatch, ForwardBatch, RecurrentBatch, RoutingHook
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput
from staticfire.engine.worker.cache import CacheBuffers
from staticfire.engine.worker.steady import SteadyDecode
from staticfire.kernels.causal_conv1d import make_metadata as conv_metadata
from staticfire.kernels.dispatch import Backend
from staticfire.kernels.paged_attention import make_metadata as read_metadata
from staticfire.kernels.pages import geometry
from staticfire.kernels.reshape_and_cache import CacheWrites
from staticfire.kernels.selective_scan import make_metadata as scan_metadata
from staticfire.kernels.slots import Slots

Ints = npt.NDArray[np.int64]
Chunks = tuple[ScheduledChunk, ...]

SPARE_BLOCKS = 4
"""Blocks by which a sequence may grow before its block table is made anew."""


class InputBuilder:
    """Builds `ForwardBatch`es; a decode step that goes on from the last one is made from that."""

    def __init__(self, caches: CacheBuffers, dtype: torch.dtype, backend: Backend = "torch") -> None:
        """Build for these caches, a model that computes in `dtype`, and the ops of `backend`."""
        self._dtype = dtype
        self._backend = backend
        self._attention = {group: caches.attention[layers[0]] for group, layers in caches.attention_groups.items()}
        self._states = {group: caches.states[layers[0]] for group, layers in caches.recurrent_groups.items()}
        self._num_groups = len(caches.layout.groups)
        self._steady: SteadyDecode | None = None

    def build(self, output: SchedulerOutput, routing: RoutingHook | None = None) -> ForwardBatch:
        """Make the tensors of one step."""
        chunks = output.chunks
        # An id may come back as another request, by chance where the old one would have gone on.
        if self._steady is not None and not output.finished and not output.preempted:
            batch = self._steady.next(chunks)
            if batch is not None:
                batch.routing = routing
                return batch
        batch = self._fresh(chunks)
        batch.routing = routing
        self._steady = SteadyDecode(chunks, batch, list(self._states)) if batch.one_token_each else None
        return batch

    def forget(self) -> None:
        """Make the next step's tensors anew: the ids of the last one's requests may come back as others."""
        self._steady = None

    def _fresh(self, chunks: Chunks) -> ForwardBatch:
        starts = np.array([chunk.start for chunk in chunks])
        lengths = np.array([len(chunk.token_ids) for chunk in chunks])
        cu = np.zeros(len(chunks) + 1, np.int64)
        np.cumsum(lengths, out=cu[1:])
        owner = np.repeat(np.arange(len(chunks)), lengths)
        positions = np.arange(cu[-1]) + (starts - cu[:-1])[owner]
        tokens = np.fromiter(chain.from_iterable(chunk.token_ids for chunk in chunks), np.int64, int(cu[-1]))
        batch = ForwardBatch(
            token_ids=torch.from_numpy(tokens),
            positions=torch.from_numpy(positions),
            one_token_each=int(lengths.max()) == 1,
            cu_seqlens=torch.from_numpy(cu),
            seq_lens=torch.from_numpy(starts + lengths),
            groups=(),
            backend=self._backend,
        )
        groups: dict[int, AttentionBatch | RecurrentBatch] = {}
        for number, kv_cache in self._attention.items():
            groups[number] = self._attend(number, kv_cache, chunks, batch, positions, owner)
        for index, number in enumerate(self._states):
            blocks = torch.tensor([chunk.state_blocks[index] for chunk in chunks])
            groups[number] = self._recur(number, blocks, torch.from_numpy(starts > 0), batch)
        batch.groups = tuple(groups[number] for number in range(self._num_groups))
        return batch

    def _attend(
        self, number: int, kv_cache: torch.Tensor, chunks: Chunks, batch: ForwardBatch, positions: Ints, owner: Ints
    ) -> AttentionBatch:
        pages = geometry(kv_cache)
        needed = int(positions.max()) // pages.size + 1
        tables = np.zeros((len(chunks), needed + SPARE_BLOCKS), np.int64)
        for row, chunk in enumerate(chunks):
            ids = chunk.block_ids[number]
            tables[row, : len(ids)] = ids[:needed]
        blocks, offsets = tables[owner, positions // pages.size], positions % pages.size
        keys = blocks * pages.block + offsets
        block_tables = torch.from_numpy(tables)
        return AttentionBatch(
            block_tables=block_tables,
            slot_mapping=torch.from_numpy(blocks * pages.size + offsets),
            writes=CacheWrites(pages, torch.from_numpy(keys), torch.from_numpy(keys + pages.plane), None),
            reads=read_metadata(kv_cache, block_tables, batch.cu_seqlens, batch.seq_lens, self._dtype),
        )

    def _recur(self, number: int, blocks: torch.Tensor, has_state: torch.Tensor, batch: ForwardBatch) -> RecurrentBatch:
        made = RecurrentBatch(blocks, has_state, Slots(blocks, None))
        if batch.backend == "torch" and not batch.one_token_each:
            conv_state = self._states[number][0]
            made.conv = conv_metadata(batch.cu_seqlens, blocks, has_state, conv_state.shape[2] + 1)
            made.scan = scan_metadata(batch.cu_seqlens, blocks, has_state)
        return made
