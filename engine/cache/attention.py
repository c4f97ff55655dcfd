"""Paged keys and values: one block for every `block_size` tokens. Imports no torch."""

from collections.abc import Sequence

from staticfire.engine.cache.base import UNLIMITED, CacheGroupManager, StepEffects
from staticfire.engine.cache.block_pool import BlockPool
from staticfire.engine.cache.errors import CacheCorruptionError


class AttentionManager(CacheGroupManager):
    """Full attention: a table holds every block from the first token on; hits are closed downwards."""

    def __init__(self, group: int, block_size: int, pool: BlockPool, *, caching: bool, zero_new: bool) -> None:
        super().__init__(group, block_size, pool, caching=caching, zero_new=zero_new)
        self._offered: dict[str, int] = {}  # request -> leading blocks that came from or went to the prefix map

    def adopt(self, request_id: str, blocks: list[int]) -> None:
        """Open the table; the blocks of the hit are registered already."""
        super().adopt(request_id, blocks)
        self._offered[request_id] = len(blocks)

    def free(self, request_id: str) -> None:
        """Close the table."""
        del self._offered[request_id]
        super().free(request_id)

    def longest_hit(self, hashes: Sequence[bytes], max_tokens: int) -> int:
        """Scan left to right: the first block that is missing ends the hit."""
        limit = min(max_tokens // self.block_size, len(hashes))
        for index in range(limit):
            if self.pool.find(self.key(hashes[index])) is None:
                return index * self.block_size
        return limit * self.block_size

    def hit_blocks(self, hashes: Sequence[bytes], num_tokens: int) -> list[int]:
        """Return the registered block of every leading block."""
        blocks = []
        for index in range(num_tokens // self.block_size):
            block = self.pool.find(self.key(hashes[index]))
            if block is None:
                raise CacheCorruptionError(f"group {self.group}: block {index} of a hit is not registered")
            blocks.append(block)
        return blocks

    def blocks_needed(self, table_length: int, end: int) -> int:
        """Every started block is needed."""
        return max(0, -(-end // self.block_size) - table_length)

    def max_blocks(self, num_tokens: int) -> int:
        """All of them, to the end."""
        return -(-num_tokens // self.block_size)

    def allocate(self, request_id: str, end: int, effects: StepEffects) -> int:
        """Append blocks up to `end`."""
        table = self.tables[request_id]
        for _ in range(self.blocks_needed(len(table), end)):
            block = self.pool.allocate()
            table.append(block)
            if self.zero_new:
                effects.zero_blocks.append(block)
        return len(table) * self.block_size

    def commit(self, request_id: str, hashes: Sequence[bytes], computed: int) -> int:
        """Register the blocks that are full now."""
        if not self.caching:
            return UNLIMITED
        table = self.tables[request_id]
        full = computed // self.block_size
        for index in range(self._offered[request_id], full):
            self.pool.register(table[index], self.key(hashes[index]))
        self._offered[request_id] = full
        return (full + 1) * self.block_size

    def check(self, request_id: str, hashes: Sequence[bytes], computed: int) -> None:
        """Every computed token has a block, and no block is registered before it is full or under another hash."""
        table = self.tables[request_id]
        if len(table) * self.block_size < computed:
            raise CacheCorruptionError(f"group {self.group}, request {request_id!r}: {len(table)} blocks of "
                                       f"{self.block_size} tokens for {computed} computed tokens")  # fmt: skip
        for index, block in enumerate(table):
            if block == 0:
                raise CacheCorruptionError(f"group {self.group}, request {request_id!r}: null block at index {index}")
            key = self.pool.key_of(block)
            if key is None:
                continue
            if (index + 1) * self.block_size > computed or key != self.key(hashes[index]):
                raise CacheCorruptionError(
                    f"group {self.group}, request {request_id!r}: block {block} at index {index} is registered as "
                    f"{key}, which its {computed} computed tokens do not justify"
                )
