"""From one step's chunks to the tensors that every layer shares."""

from itertools import chain

import numpy as np
import numpy.typing as npt
import torch

from staticfire.engine.cache.spec import AttentionSpec, CacheLayout
from staticfire.engine.layers.batch import AttentionBatch, ForwardBatch, RecurrentBatch, RoutingHook
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput
from staticfire.kernels.slots import Slots

Ints = npt.NDArray[np.int64]


class _Table:
    """The block tables of one attention group: a row per live request, rewritten only when it changed."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self.blocks: Ints = np.zeros((16, 16), np.int64)
        self._known: dict[int, list[int]] = {}

    def write(self, row: int, ids: list[int]) -> None:
        """Make `row` hold `ids`."""
        if self._known.get(row) == ids:
            return
        height, width = self.blocks.shape
        if row >= height or len(ids) > width:
            grown = np.zeros((max(height, 2 * row), max(width, 2 * len(ids))), np.int64)
            grown[:height, :width] = self.blocks
            self.blocks = grown
        self.blocks[row, : len(ids)] = ids
        self._known[row] = list(ids)


class InputBuilder:
    """Builds `ForwardBatch`es; remembers block tables between steps, so that a decode step writes next to nothing."""

    def __init__(self, layout: CacheLayout) -> None:
        """Prepare one table per attention group."""
        self._tables = {
            number: _Table(group.spec.block_size)
            for number, group in enumerate(layout.groups)
            if isinstance(group.spec, AttentionSpec)
        }
        self._recurrent = [number for number in range(len(layout.groups)) if number not in self._tables]
        self._num_groups = len(layout.groups)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []

    def build(self, output: SchedulerOutput, routing: RoutingHook | None = None) -> ForwardBatch:
        """Make the tensors of one step."""
        for request_id in chain(output.finished, output.preempted):
            row = self._rows.pop(request_id, None)
            if row is not None:
                self._free.append(row)
        chunks = output.chunks
        rows = np.array([self._row(chunk) for chunk in chunks])
        starts = np.array([chunk.start for chunk in chunks])
        one_each = all(len(chunk.token_ids) == 1 for chunk in chunks)
        if one_each:
            tokens = np.array([chunk.token_ids[0] for chunk in chunks])
            cu = np.arange(len(chunks) + 1)
            positions, owner, ends = starts, cu[:-1], starts + 1
        else:
            tokens, cu, positions, owner, ends = _ragged(chunks, starts)
        groups: list[AttentionBatch | RecurrentBatch | None] = [None] * self._num_groups
        for number, table in self._tables.items():
            groups[number] = _attention(table, rows, positions, owner, int(ends.max()))
        has_state = torch.from_numpy(starts > 0)
        for index, number in enumerate(self._recurrent):
            states = torch.tensor([chunk.state_blocks[index] for chunk in chunks])
            groups[number] = RecurrentBatch(states, has_state, Slots(states, None))
        return ForwardBatch(
            token_ids=torch.from_numpy(tokens),
            positions=torch.from_numpy(positions),
            one_token_each=one_each,
            cu_seqlens=torch.from_numpy(cu),
            seq_lens=torch.from_numpy(ends),
            groups=tuple(group for group in groups if group is not None),
            routing=routing,
        )

    def _row(self, chunk: ScheduledChunk) -> int:
        """The table row of a chunk's request, brought up to date."""
        row = self._rows.get(chunk.request_id)
        if row is None:
            row = self._free.pop() if self._free else len(self._rows)
            self._rows[chunk.request_id] = row
        for number, table in self._tables.items():
            table.write(row, chunk.block_ids[number])
        return row


def _ragged(chunks: tuple[ScheduledChunk, ...], starts: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """(tokens, cumulative lengths, positions, owning chunk, ends) of chunks of several lengths."""
    lengths = np.array([len(chunk.token_ids) for chunk in chunks])
    cu = np.zeros(len(chunks) + 1, np.int64)
    np.cumsum(lengths, out=cu[1:])
    tokens = np.fromiter(chain.from_iterable(chunk.token_ids for chunk in chunks), np.int64, int(cu[-1]))
    owner = np.repeat(np.arange(len(chunks)), lengths)
    positions = np.arange(cu[-1]) + (starts - cu[:-1])[owner]
    return tokens, cu, positions, owner, starts + lengths


def _attention(table: _Table, rows: Ints, positions: Ints, owner: Ints, longest: int) -> AttentionBatch:
    size = table.block_size
    blocks = table.blocks[rows, : -(-longest // size)]
    slots = blocks[owner, positions // size] * size + positions % size
    return AttentionBatch(torch.from_numpy(blocks), torch.from_numpy(slots))
