"""Ref-counted blocks shared by all cache groups, and the prefix map over them. Imports no torch.

A block is in exactly one of three conditions:

    ref_count > 0                  held by requests; never handed out, its content may be shared if registered
    ref_count == 0, registered     free, but its content can still be found by key until the block is handed out
    ref_count == 0, unregistered   free, content worthless

Free blocks are handed out from the head of one list. Worthless blocks enter at the head; registered ones at the
tail, so what is evicted is always the registered block that has been free for the longest time.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.spec import NULL_BLOCK


class BlockKey(NamedTuple):
    """Under what a block's content is found: the hash of all tokens up to its end, and the cache group."""

    hash: bytes
    group: int


class BlockPool:
    """Blocks `1 .. num_blocks - 1`; block 0 is the null block and never leaves the pool's hands.

    Args:
        num_blocks: Blocks in the pool, the null block included; at least 2.
    """

    def __init__(self, num_blocks: int) -> None:
        if num_blocks < 2:
            raise ValueError(f"num_blocks={num_blocks}: must be at least 2, the null block and one to use")
        self.num_blocks = num_blocks
        self._ref_counts = [0] * num_blocks
        self._keys: list[BlockKey | None] = [None] * num_blocks
        self._registered: dict[BlockKey, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(NULL_BLOCK + 1, num_blocks))

    @property
    def num_usable(self) -> int:
        """Blocks that requests can hold, in use or not."""
        return self.num_blocks - 1

    @property
    def num_free(self) -> int:
        """Blocks that can be handed out now."""
        return len(self._free)

    def allocate(self) -> int:
        """Hand out the free block whose content is worth least, forgetting that content.

        Raises:
            CacheCorruptionError: No block is free; the caller compares with `num_free` first.
        """
        if not self._free:
            raise CacheCorruptionError(f"allocate: all {self.num_usable} blocks are in use")
        block, _ = self._free.popitem(last=False)
        key = self._keys[block]
        if key is not None:
            del self._registered[key]
            self._keys[block] = None
        self._ref_counts[block] = 1
        return block

    def take(self, block: int) -> None:
        """Hold a registered block once more."""
        if self._ref_counts[block] == 0:
            del self._free[block]
        self._ref_counts[block] += 1

    def release(self, block: int) -> None:
        """Hold a block once less; the last holder frees it."""
        if self._ref_counts[block] < 1:
            raise CacheCorruptionError(f"release: block {block} is held by nobody")
        self._ref_counts[block] -= 1
        if self._ref_counts[block] == 0:
            self._free[block] = None
            if self._keys[block] is None:
                self._free.move_to_end(block, last=False)

    def register(self, block: int, key: BlockKey) -> bool:
        """Let the content of a held block be found under `key`.

        Where another block already answers to `key` (two requests computed the same tokens side by side) the first
        one stays and `block` remains private.

        Returns:
            Whether `block` now answers to `key`.
        """
        if self._registered.setdefault(key, block) != block:
            return False
        if self._keys[block] not in {None, key}:
            raise CacheCorruptionError(f"register: block {block} already holds {self._keys[block]}, not {key}")
        self._keys[block] = key
        return True

    def find(self, key: BlockKey) -> int | None:
        """Return the block whose content is registered under `key`."""
        return self._registered.get(key)

    def key_of(self, block: int) -> BlockKey | None:
        """Return the key a block is registered under."""
        return self._keys[block]

    def is_free(self, block: int) -> bool:
        """Whether nobody holds the block."""
        return block in self._free

    def check(self, references: Mapping[int, int]) -> None:
        """Recount everything.

        Args:
            references: Block -> times it stands in block tables, null block left out.

        Raises:
            CacheCorruptionError: With the first contradiction found.
        """
        used = sum(1 for count in self._ref_counts if count)
        if used + len(self._free) != self.num_usable:
            raise CacheCorruptionError(f"{len(self._free)} free + {used} used blocks != {self.num_usable} usable")
        if self._ref_counts[NULL_BLOCK] or NULL_BLOCK in self._free or self._keys[NULL_BLOCK] is not None:
            raise CacheCorruptionError("the null block is free, held or registered")
        for block, count in enumerate(self._ref_counts):
            if count != references.get(block, 0):
                raise CacheCorruptionError(
                    f"block {block}: ref_count {count}, but {references.get(block, 0)} table entries"
                )
            if count and block in self._free:
                raise CacheCorruptionError(f"block {block}: free and held {count} times")
        self._check_map()

    def _check_map(self) -> None:
        for key, block in self._registered.items():
            if self._keys[block] != key:
                raise CacheCorruptionError(f"block {block}: found under {key}, but knows {self._keys[block]}")
        known = sum(1 for key in self._keys if key is not None)
        if known != len(self._registered):
            raise CacheCorruptionError(f"{known} blocks know a key, {len(self._registered)} keys are in the prefix map")
