"""Recurrent states at block boundaries: cache mode `align`. Imports no torch.

Slot p of a table is for the state after exactly (p + 1) * block_size tokens. Only the state at the end of each step
exists, so most slots are NULL_BLOCK; the last slot is always the running state's. The running state may stand
anywhere inside its block and is registered only when it stands exactly at the end of it. From there the next token
belongs to the next slot, so a registered state is never advanced in place.
"""

from collections.abc import Sequence

from staticfire.engine.cache.base import UNLIMITED, CacheGroupManager, StepEffects
from staticfire.engine.cache.block_pool import BlockPool
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.spec import NULL_BLOCK
from staticfire.engine.scheduler.output import StateCopy


class AlignedStateManager(CacheGroupManager):
    """One running state a request, copied on to a new block whenever it crosses a boundary."""

    keeps_state = True

    def __init__(self, group: int, block_size: int, pool: BlockPool, *, caching: bool, zero_new: bool) -> None:
        super().__init__(group, block_size, pool, caching=caching, zero_new=zero_new)
        self._copied: dict[str, int] = {}  # request -> slot of the state that the step in flight copies on

    def longest_hit(self, hashes: Sequence[bytes], max_tokens: int) -> int:
        """Scan right to left: the deepest boundary whose state is registered."""
        for index in range(min(max_tokens // self.block_size, len(hashes)) - 1, -1, -1):
            if self.pool.find(self.key(hashes[index])) is not None:
                return (index + 1) * self.block_size
        return 0

    def hit_blocks(self, hashes: Sequence[bytes], num_tokens: int) -> list[int]:
        """Return placeholders, and the state at the end."""
        if num_tokens == 0:
            return []
        slot = num_tokens // self.block_size - 1
        block = self.pool.find(self.key(hashes[slot]))
        if block is None or num_tokens % self.block_size:
            raise CacheCorruptionError(f"group {self.group}: no state is registered at {num_tokens} tokens")
        return [NULL_BLOCK] * slot + [block]

    def blocks_needed(self, table_length: int, end: int) -> int:
        """One where the state crosses into another slot."""
        return int((end - 1) // self.block_size >= table_length)

    def max_blocks(self, num_tokens: int) -> int:
        """Two while a step moves the state on: where it comes from, and where it goes."""
        return 1 if num_tokens <= self.block_size else 2

    def allocate(self, request_id: str, end: int, effects: StepEffects) -> int:
        """Give the state at `end` its block, and have the state so far copied there."""
        table = self.tables[request_id]
        slot = (end - 1) // self.block_size
        if slot >= len(table):
            block = self.pool.allocate()
            if table:
                effects.state_copies.append(StateCopy(self.group, table[-1], block))
                self._copied[request_id] = len(table) - 1
            table.extend([NULL_BLOCK] * (slot - len(table)))
            table.append(block)
        return (slot + 1) * self.block_size

    def commit(self, request_id: str, hashes: Sequence[bytes], computed: int) -> int:
        """Release the state that was copied on, and register the running one if it stands at a boundary."""
        table = self.tables[request_id]
        copied = self._copied.pop(request_id, None)
        if copied is not None:
            self.pool.release(table[copied])
            table[copied] = NULL_BLOCK
        if not self.caching:
            return UNLIMITED
        if computed == len(table) * self.block_size:
            self.pool.register(table[-1], self.key(hashes[len(table) - 1]))
        return (computed // self.block_size + 1) * self.block_size

    def free(self, request_id: str) -> None:
        """Close the table, a state that waits for its copy included."""
        self._copied.pop(request_id, None)
        super().free(request_id)

    def check(self, request_id: str, hashes: Sequence[bytes], computed: int) -> None:
        """The last slot covers `computed`, and only a state exactly at its boundary is registered."""
        table = self.tables[request_id]
        name = f"group {self.group}, request {request_id!r}"
        if not table or table[-1] == NULL_BLOCK or len(table) * self.block_size < computed:
            raise CacheCorruptionError(f"{name}: no running state for {computed} computed tokens in {table}")
        held = [slot for slot, block in enumerate(table) if block != NULL_BLOCK]
        if len(held) > 2:
            raise CacheCorruptionError(f"{name}: states held at slots {held}")
        for slot in held:
            key = self.pool.key_of(table[slot])
            if key is not None and (computed != (slot + 1) * self.block_size or key != self.key(hashes[slot])):
                raise CacheCorruptionError(
                    f"{name}: block {table[slot]} at slot {slot} is registered as {key} at {computed} computed tokens"
                )
