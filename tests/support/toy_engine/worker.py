"""A worker whose memory can be read: it computes from its pages alone, and a referee checks every page it reads.

One page per block id, as in the engine's pool, where a block belongs to one group at a time. An attention page
holds (position, token) cells; a state page holds a fold over tokens. A fresh page is garbage, a state read as keys
and values is not a number.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from zlib import crc32

from staticfire.engine.cache.spec import NULL_BLOCK, AttentionSpec, CacheLayout
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput, StepOutput

ZERO_STATE = 0


class ToyError(AssertionError):
    """The worker read something that a right schedule would not have put there."""


@dataclass(frozen=True)
class State:
    """The fold over some tokens; -1 in a page that nobody has written."""

    value: int


Cell = tuple[int, int] | None
Page = State | list[Cell]


def fold(state: int, tokens: Iterable[int]) -> int:
    """The toy recurrence: order-sensitive, never forgets."""
    for token in tokens:
        state = (state * 1_000_003 + token + 1) % (1 << 61)
    return state


class ToyWorker:
    """Executes steps.

    Args:
        layout: The cache to hold.
        vocab: Tokens to draw from.
        skip: Faults to plant: `zero`, `copy`, `reset` leave that action out; `slot` uses a neighbour's state.
    """

    def __init__(self, layout: CacheLayout, vocab: int, skip: frozenset[str] = frozenset()) -> None:
        self.layout = layout
        self.vocab = vocab
        self.skip = skip
        self.attention_block = max(
            (g.spec.block_size for g in layout.groups if isinstance(g.spec, AttentionSpec)), default=0
        )
        hybrid = any(not isinstance(group.spec, AttentionSpec) for group in layout.groups)
        self.pages: list[Page] = [State(-1) if hybrid else self._zeros() for _ in range(layout.num_blocks)]

    def execute(self, output: SchedulerOutput) -> StepOutput:
        """Compute one step; the answer depends on nothing but what the pages hold."""
        if "zero" not in self.skip:
            for block in output.zero_blocks:
                self.pages[block] = self._zeros()
        if "copy" not in self.skip:
            for copy in output.state_copies:
                self.pages[copy.dst] = self.pages[copy.src]
        sampled = {}
        for chunk in output.chunks:
            digest = self._compute(chunk)
            if chunk.samples:
                sampled[chunk.request_id] = digest % self.vocab
        return StepOutput(sampled, {}, {})

    def _zeros(self) -> list[Cell]:
        return [None] * self.attention_block

    def _compute(self, chunk: ScheduledChunk) -> int:
        seen: list[object] = []
        state_blocks = iter(chunk.state_blocks)
        for group, table in zip(self.layout.groups, chunk.block_ids, strict=True):
            if isinstance(group.spec, AttentionSpec):
                seen.append(self._attend(chunk, table, group.spec.block_size))
            else:
                seen.append(self._recur(chunk, next(state_blocks)))
        return crc32(repr(seen).encode())

    def _attend(self, chunk: ScheduledChunk, table: list[int], block_size: int) -> list[int]:
        end = chunk.start + len(chunk.token_ids)
        for position, token in enumerate(chunk.token_ids, start=chunk.start):
            page = self._attention_page(table[position // block_size])
            page[position % block_size] = (position, token)
        tokens = []
        for index in range(-(-end // block_size)):
            page = self._attention_page(table[index])
            for offset in range(min(block_size, end - index * block_size)):
                cell = page[offset]
                if cell is None or cell[0] != index * block_size + offset:
                    raise ToyError(f"{chunk.request_id}: position {index * block_size + offset} reads {cell}")
                tokens.append(cell[1])
        return tokens

    def _attention_page(self, block: int) -> list[Cell]:
        page = self.pages[block]
        if block == NULL_BLOCK or isinstance(page, State):
            raise ToyError(f"block {block} holds a state or garbage, read as keys and values")
        return page

    def _recur(self, chunk: ScheduledChunk, block: int) -> int:
        if block == NULL_BLOCK:
            raise ToyError(f"{chunk.request_id}: the running state is in the null block")
        if chunk.start == 0 and "reset" not in self.skip:
            self.pages[block] = State(ZERO_STATE)
        page = self.pages[block + 1 if "slot" in self.skip and block + 1 < len(self.pages) else block]
        value = page.value if isinstance(page, State) else crc32(repr(page).encode())
        state = fold(value, chunk.token_ids)
        self.pages[block] = State(state)
        return state
