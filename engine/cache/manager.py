"""The cache as the scheduler sees it: a request's blocks in all groups. Imports no torch."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from staticfire.engine.cache.attention import AttentionManager
from staticfire.engine.cache.base import CacheGroupManager, StepEffects
from staticfire.engine.cache.block_pool import BlockPool
from staticfire.engine.cache.coordinator import Hit, find_hit, no_hit
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.hashing import extend_chain, hash_block_size
from staticfire.engine.cache.recurrent import RECURRENT_MODES
from staticfire.engine.cache.spec import NULL_BLOCK, CacheLayout, MambaSpec
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.request import Request


@dataclass(slots=True)
class RequestBlocks:
    """The blocks of one request.

    Attributes:
        tables: One block table per group; the lists themselves, which grow in place.
        state_blocks: Current block of each group that keeps a state.
        room: Tokens up to which no group needs anything.
        next_commit: Computed tokens from which `commit` has something to do.
    """

    tables: tuple[list[int], ...]
    state_blocks: tuple[int, ...] = ()
    room: int = 0
    next_commit: int = 0


class CacheManager:
    """Finds prefixes, gives blocks, takes them back.

    Args:
        config: The engine's configuration.
        layout: Its cache groups.
    """

    def __init__(self, config: EngineConfig, layout: CacheLayout) -> None:
        self.pool = BlockPool(layout.num_blocks)
        size = hash_block_size(layout) if config.cache.enable_prefix_caching else None
        self._hash_block_size = size or 0
        self.managers = _make_managers(layout, self.pool, caching=size is not None)
        self._requests: dict[str, RequestBlocks] = {}
        self._effects = StepEffects()

    @property
    def caching(self) -> bool:
        """Whether prefixes are kept and looked up."""
        return self._hash_block_size > 0

    def reads(self, request: Request) -> bool:
        """Whether a request looks for its beginning among what is cached.

        One that asks for prompt logprobs starts at 0: they exist only for computed tokens.
        """
        return self.caching and request.sampling_params.prompt_logprobs is None

    def lookup(self, request: Request) -> Hit:
        """Find where a request without blocks can start. Changes nothing but its hash chain."""
        if not self.reads(request):
            return no_hit(self.managers)
        # The last known token is always computed, so only the blocks before it are looked up.
        limit = request.num_tokens - 1
        hashes = extend_chain(request, self._hash_block_size, limit)
        return find_hit(self.managers, hashes, limit)

    def admit(self, request: Request, hit: Hit, end: int) -> bool:
        """Hold the blocks of `hit`, just looked up, and give the ones needed to compute up to token `end`.

        Returns:
            Whether there were enough; if not, nothing has changed.
        """
        needed = sum(
            manager.blocks_needed(len(blocks), end) for manager, blocks in zip(self.managers, hit.blocks, strict=True)
        )
        if hit.num_tokens:
            needed += sum(self.pool.is_free(block) for blocks in hit.blocks for block in blocks)
        if needed > self.pool.num_free:
            return False
        for manager, blocks in zip(self.managers, hit.blocks, strict=True):
            manager.adopt(request.request_id, blocks)
        held = self._requests[request.request_id] = RequestBlocks(hit.blocks)
        self._allocate(request.request_id, held, end)
        return True

    def extend(self, request: Request, end: int) -> bool:
        """Give a request the blocks it needs to compute up to token `end`.

        Returns:
            Whether there were enough; if not, nothing has changed.
        """
        held = self._requests[request.request_id]
        if end <= held.room:
            return True
        needed = 0
        for manager, table in zip(self.managers, held.tables, strict=True):
            needed += manager.blocks_needed(len(table), end)
        if needed > self.pool.num_free:
            return False
        self._allocate(request.request_id, held, end)
        return True

    def _allocate(self, request_id: str, held: RequestBlocks, end: int) -> None:
        held.room = min([manager.allocate(request_id, end, self._effects) for manager in self.managers])
        held.state_blocks = tuple(m.current_block(request_id) for m in self.managers if m.keeps_state)
        held.next_commit = 0

    def blocks(self, request_id: str) -> RequestBlocks:
        """Return the blocks of an admitted request."""
        return self._requests[request_id]

    def take_effects(self) -> StepEffects:
        """Return what the worker has to do for all that was given since the last call."""
        effects, self._effects = self._effects, StepEffects()
        return effects

    def commit(self, request: Request) -> None:
        """Let others find what the last step computed, up to `request.num_computed_tokens`."""
        computed = request.num_computed_tokens
        held = self._requests[request.request_id]
        if computed < held.next_commit:
            return
        hashes = extend_chain(request, self._hash_block_size, computed) if self.caching else request.block_hashes
        held.next_commit = min([manager.commit(request.request_id, hashes, computed) for manager in self.managers])

    def free(self, request_id: str) -> None:
        """Take back all blocks of a request; registered ones can still be found until they are given to another."""
        del self._requests[request_id]
        for manager in self.managers:
            manager.free(request_id)

    def max_blocks(self, num_tokens: int) -> int:
        """Return the most blocks a request of `num_tokens` computed tokens holds at once, over all groups."""
        return sum(manager.max_blocks(num_tokens) for manager in self.managers)

    def check_integrity(self, requests: Mapping[str, Request]) -> None:
        """Recount every block from the tables and compare with the pool and with the requests that hold blocks.

        Args:
            requests: The running requests, by id.

        Raises:
            CacheCorruptionError: With the first contradiction found.
        """
        owner: dict[int, int] = {}
        references: Counter[int] = Counter()
        for manager in self.managers:
            if manager.tables.keys() != requests.keys() or self._requests.keys() != requests.keys():
                raise CacheCorruptionError(
                    f"group {manager.group} has tables of {sorted(manager.tables)}, running are {sorted(requests)}"
                )
            for request_id, table in manager.tables.items():
                request = requests[request_id]
                manager.check(request_id, request.block_hashes, request.num_computed_tokens)
                references.update(block for block in table if block != NULL_BLOCK)
                for block in table:
                    if block != NULL_BLOCK and owner.setdefault(block, manager.group) != manager.group:
                        raise CacheCorruptionError(f"block {block} is in groups {owner[block]} and {manager.group}")
        self.pool.check(references)


def _make_managers(layout: CacheLayout, pool: BlockPool, *, caching: bool) -> tuple[CacheGroupManager, ...]:
    hybrid = any(isinstance(group.spec, MambaSpec) for group in layout.groups)
    managers = []
    for index, group in enumerate(layout.groups):
        kind = RECURRENT_MODES[group.spec.mode] if isinstance(group.spec, MambaSpec) else AttentionManager
        managers.append(kind(index, group.spec.block_size, pool, caching=caching, zero_new=hybrid))
    return tuple(managers)
