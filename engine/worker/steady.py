"""The common case: the same requests decode again, each one token further."""

from collections.abc import Sequence

import numpy as np
import torch

from staticfire.engine.layers.batch import AttentionBatch, ForwardBatch, RecurrentBatch
from staticfire.engine.scheduler.output import ScheduledChunk
from staticfire.kernels.paged_attention import advance

Chunks = Sequence[ScheduledChunk]


class SteadyDecode:
    """Turns the batch of a decode step into that of the next one, in place.

    A request that was computed in the last step and now goes on where it stopped still has the blocks it had, with
    at most one more: had it lost them, it would have missed a step or started further back.
    """

    def __init__(self, chunks: Chunks, batch: ForwardBatch, recurrent: Sequence[int]) -> None:
        """Remember a decode step.

        Args:
            chunks: Its chunks, of one token each.
            batch: What was made of them; it is changed from now on.
            recurrent: The recurrent cache groups, in order.
        """
        self._batch = batch
        self._requests = [chunk.request_id for chunk in chunks]
        self._starts = [chunk.start for chunk in chunks]
        self._attention = [
            _Growth(number, group, self._starts)
            for number, group in enumerate(batch.groups)
            if isinstance(group, AttentionBatch)
        ]
        self._recurrent = [group for number in recurrent if isinstance(group := batch.groups[number], RecurrentBatch)]
        self._states = [chunk.state_blocks for chunk in chunks]

    def next(self, chunks: Chunks) -> ForwardBatch | None:
        """The batch of these chunks; None unless they go on from the last ones and there is room.

        After None the last batch is of no more use.
        """
        starts = [start + 1 for start in self._starts]
        if [chunk.request_id for chunk in chunks] != self._requests or [chunk.start for chunk in chunks] != starts:
            return None
        tokens = [chunk.token_ids for chunk in chunks]
        if max(map(len, tokens)) > 1:
            return None
        self._starts = starts
        for growth in self._attention:
            if not growth.grow(chunks):
                return None
        states = [chunk.state_blocks for chunk in chunks]
        for index, group in enumerate(self._recurrent):
            group.has_initial_state.fill_(True)
            if states != self._states:
                group.state_indices.copy_(torch.tensor([blocks[index] for blocks in states]))
        self._states = states
        batch = self._batch
        batch.token_ids = torch.from_numpy(np.array(tokens).reshape(-1))
        batch.positions += 1
        batch.seq_lens += 1
        batch.rotary = None
        batch.continued = True
        return batch


class _Growth:
    """The tables and index lists of one attention group."""

    def __init__(self, number: int, group: AttentionBatch, starts: Sequence[int]) -> None:
        self._number = number
        self._group = group
        self._size = group.writes.pages.size
        self._starts = np.array(starts)
        self._offsets = self._starts % self._size

    def grow(self, chunks: Chunks) -> bool:
        """Move every sequence on by one position; False if the index lists are full."""
        group, size = self._group, self._size
        writes = group.writes
        self._starts += 1
        self._offsets += 1
        group.slot_mapping += 1
        writes.key_rows.add_(1)
        writes.value_rows.add_(1)
        if self._offsets.max() == size:
            for row in np.flatnonzero(self._offsets == size).tolist():
                index = int(self._starts[row]) // size
                if index >= group.block_tables.shape[1]:
                    return False
                block = chunks[row].block_ids[self._number][index]
                self._offsets[row] = 0
                group.block_tables[row, index] = block
                group.slot_mapping[row] = block * size
                writes.key_rows[row] = block * writes.pages.block
                writes.value_rows[row] = block * writes.pages.block + writes.pages.plane
        return advance(group.reads, writes.key_rows, writes.value_rows)
