"""One recurrent state a request: cache mode `none`. Imports no torch."""

from collections.abc import Sequence

from staticfire.engine.cache.base import UNLIMITED, CacheGroupManager, StepEffects
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.spec import NULL_BLOCK


class SingleStateManager(CacheGroupManager):
    """One state, advanced in place and never registered; its block is a whole request long."""

    keeps_state = True

    def longest_hit(self, hashes: Sequence[bytes], max_tokens: int) -> int:
        """Return 0: no state is kept to go on from."""
        del hashes, max_tokens
        return 0

    def hit_blocks(self, hashes: Sequence[bytes], num_tokens: int) -> list[int]:
        """Return an empty table."""
        del hashes, num_tokens
        return []

    def blocks_needed(self, table_length: int, end: int) -> int:
        """One, once."""
        del end
        return 1 - min(table_length, 1)

    def max_blocks(self, num_tokens: int) -> int:
        """One."""
        del num_tokens
        return 1

    def allocate(self, request_id: str, end: int, effects: StepEffects) -> int:
        """Take the one block at the first chunk."""
        del end, effects
        table = self.tables[request_id]
        if not table:
            table.append(self.pool.allocate())
        return UNLIMITED

    def commit(self, request_id: str, hashes: Sequence[bytes], computed: int) -> int:
        """Do nothing: the state stays private."""
        del request_id, hashes, computed
        return UNLIMITED

    def check(self, request_id: str, hashes: Sequence[bytes], computed: int) -> None:
        """One real block, never registered."""
        del hashes, computed
        table = self.tables[request_id]
        if len(table) != 1 or table[0] == NULL_BLOCK or self.pool.key_of(table[0]) is not None:
            raise CacheCorruptionError(f"group {self.group}, request {request_id!r}: {table} is not one private state")
