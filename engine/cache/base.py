"""What every cache group answers, whatever it keeps in a block. Imports no torch.

Who owns which block of one request, over one step that computes tokens [start, end), with b tokens a block:

    attention  [0, start // b)          full, registered (or a duplicate of what is): shared, never written again
               [start // b, ceil(end / b))  private: written by this step
    recurrent  slots below (start - 1) // b     NULL_BLOCK placeholders
    (align)    slot (start - 1) // b    state at `start`: read; shared if `start` is a boundary, else private
               slot (end - 1) // b      state at `end`: private, written by this step

Where the two recurrent slots are one slot the state is private and advances in place. Where they differ the worker
first copies the former to the latter; the former stays held until the step has run, so no other request can be
given it in between. A block is registered by `commit`, after the step: nothing in the prefix map can be found
before its content exists, also not by a request scheduled into the same step.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

from staticfire.engine.cache.block_pool import BlockKey, BlockPool
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.spec import NULL_BLOCK
from staticfire.engine.scheduler.output import StateCopy

UNLIMITED = 1 << 62
"""A number of tokens no request reaches."""


@dataclass(slots=True)
class StepEffects:
    """What the worker has to do to blocks before the step; gathered while blocks are allocated."""

    state_copies: list[StateCopy] = field(default_factory=list)
    zero_blocks: list[int] = field(default_factory=list)


class CacheGroupManager(ABC):
    """Block tables of one cache group.

    Args:
        group: Index of the group in the layout.
        block_size: Tokens of one block.
        pool: The pool shared with all other groups.
        caching: Whether full blocks are registered.
        zero_new: Whether new blocks of keys and values must be zeroed, because states may have left their bytes there.
    """

    keeps_state = False
    """Whether the worker needs to know one current block (`ScheduledChunk.state_blocks`)."""

    def __init__(self, group: int, block_size: int, pool: BlockPool, *, caching: bool, zero_new: bool) -> None:
        self.group = group
        self.block_size = block_size
        self.pool = pool
        self.caching = caching
        self.zero_new = zero_new
        self.tables: dict[str, list[int]] = {}

    @abstractmethod
    def longest_hit(self, hashes: Sequence[bytes], max_tokens: int) -> int:
        """Return the most leading tokens, at most `max_tokens`, from whose end this group could go on."""

    @abstractmethod
    def hit_blocks(self, hashes: Sequence[bytes], num_tokens: int) -> list[int]:
        """Return the table of a request that starts at `num_tokens`, a value `longest_hit` gave. Holds nothing yet."""

    @abstractmethod
    def blocks_needed(self, table_length: int, end: int) -> int:
        """Return how many new blocks a table of that length needs to compute up to token `end`."""

    @abstractmethod
    def max_blocks(self, num_tokens: int) -> int:
        """Return the most blocks one request of `num_tokens` computed tokens ever holds at once."""

    @abstractmethod
    def allocate(self, request_id: str, end: int, effects: StepEffects) -> int:
        """Make the table ready to compute up to token `end`; the caller has made sure that blocks are free.

        Returns:
            The last token up to which the table needs nothing more.
        """

    @abstractmethod
    def commit(self, request_id: str, hashes: Sequence[bytes], computed: int) -> int:
        """Register what the step filled and release what it has read; `computed` tokens are computed now.

        Args:
            request_id: Whose table.
            hashes: Hash chain of at least the full blocks in `computed`; empty without caching.
            computed: Tokens of the request whose content exists.

        Returns:
            The number of computed tokens at which the next commit has something to do, if nothing is allocated.
        """

    @abstractmethod
    def check(self, request_id: str, hashes: Sequence[bytes], computed: int) -> None:
        """Raise `CacheCorruptionError` where the table contradicts the request."""

    def adopt(self, request_id: str, blocks: list[int]) -> None:
        """Open the table of a request with the blocks of its hit, and hold them."""
        if request_id in self.tables:
            raise CacheCorruptionError(f"group {self.group}: request {request_id!r} already has a table")
        for block in blocks:
            if block != NULL_BLOCK:
                self.pool.take(block)
        self.tables[request_id] = blocks

    def free(self, request_id: str) -> None:
        """Close a table; the deepest blocks become the first to be evicted."""
        for block in reversed(self.tables.pop(request_id)):
            if block != NULL_BLOCK:
                self.pool.release(block)

    def current_block(self, request_id: str) -> int:
        """Return the block at the end of the table."""
        return self.tables[request_id][-1]

    def key(self, hash_: bytes) -> BlockKey:
        """Return the prefix-map key of this group for a hash."""
        return BlockKey(hash_, self.group)
