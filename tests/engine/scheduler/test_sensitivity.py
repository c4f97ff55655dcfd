"""The toy engine and its referee are a test only if faults of the kinds seen in the field turn them red."""

import pytest

from staticfire.engine.cache import hashing, manager
from staticfire.engine.cache.aligned_state import AlignedStateManager
from staticfire.engine.cache.attention import AttentionManager
from staticfire.engine.cache.block_pool import BlockKey, BlockPool
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.hashing import extend_chain
from staticfire.engine.scheduler import chunking
from staticfire.engine.scheduler.scheduler import Scheduler
from toy_engine.factories import toy_engine, toy_request
from toy_engine.worker import ToyError

NOTICED = (ToyError, AssertionError, CacheCorruptionError, RuntimeError, KeyError, IndexError)
PROMPT = [(7 * index + index // 9) % 50 for index in range(80)]


def workload(engine):
    """Prefix hits, decoding over boundaries, a tight pool with preemption, and reuse of all blocks."""
    for arrival, (name, prompt) in enumerate(
        [("a", PROMPT[:40]), ("b", PROMPT[:40]), ("c", PROMPT[:20] + [1] * 20), ("d", PROMPT[:20] + [2] * 9)]
    ):
        engine.run(toy_request(name, prompt, arrival=arrival, max_tokens=10))
    together = [[9] * 30, PROMPT[:38], [8] * 33, PROMPT[:40]]
    engine.run(*(toy_request(f"t{i}", prompt, arrival=10 + i, max_tokens=20) for i, prompt in enumerate(together)))
    return {name: request.output_token_ids for name, request in engine.requests.items()}


def workload_twice():
    for budget in (24, 5):  # chunks end inside a block only where the budget is below it
        workload(make(budget=budget))


def make(**options):
    return toy_engine(**{"block_size": 8, "num_blocks": 23, "budget": 24, "pattern": "MA", **options})


def test_the_workload_is_fine_and_meets_its_conditions():
    engine = make()
    outputs = workload(engine)
    assert outputs == workload(make(num_blocks=300, caching=False, mode="none", budget=256))
    requests = engine.requests.values()
    assert sum(request.num_preemptions for request in requests) > 0
    assert sum(request.num_restored_states for request in requests) > 2
    assert any(step.state_copies for step in engine.steps)


@pytest.mark.parametrize("fault", ["zero", "copy", "reset", "slot"])
def test_worker_faults_are_noticed(fault):
    with pytest.raises(NOTICED):
        workload(make(skip=[fault]))


@pytest.mark.parametrize("fault", ["copy", "reset", "slot"])
def test_worker_faults_reach_the_tokens(fault):
    """Without the referee the outputs alone tell: so they would in an engine whose pages cannot be read."""
    engine = make(skip=[fault])
    engine.referee = False
    assert workload(engine) != workload(make())


def register_states_anywhere(monkeypatch):
    def commit(self, request_id, hashes, computed):
        table = self.tables[request_id]
        if len(hashes) >= len(table):
            self.pool.register(table[-1], self.key(hashes[len(table) - 1]))
        return original(self, request_id, hashes, computed)

    original = AlignedStateManager.commit
    monkeypatch.setattr(
        manager, "extend_chain", lambda request, size, _: extend_chain(request, size, request.num_tokens)
    )
    monkeypatch.setattr(AlignedStateManager, "commit", commit)


def advance_the_shared_state_in_place(monkeypatch):
    """A hit whose state is used where it lies."""

    def allocate(self, request_id, end, effects):
        table, slot = self.tables[request_id], (end - 1) // self.block_size
        if not table:
            return original(self, request_id, end, effects)
        table.extend([0] * (slot + 1 - len(table)))
        held = next(block for block in reversed(table) if block)
        table[table.index(held)] = 0
        table[slot] = held
        return (slot + 1) * self.block_size

    original = AlignedStateManager.allocate
    monkeypatch.setattr(AlignedStateManager, "allocate", allocate)


def release_the_source_before_the_copy(monkeypatch):
    """The old state is free at once, so a later request of the same step may be given its block."""

    def allocate(self, request_id, end, effects):
        room = original(self, request_id, end, effects)
        copied = self._copied.pop(request_id, None)
        if copied is not None:
            table = self.tables[request_id]
            self.pool.release(table[copied])
            table[copied] = 0
        return room

    original = AlignedStateManager.allocate
    monkeypatch.setattr(AlignedStateManager, "allocate", allocate)
    # make the freed block the next to be handed out, as a pool with another eviction order would
    release = BlockPool.release

    def release_to_the_head(self, block):
        release(self, block)
        if self.is_free(block):
            self._free.move_to_end(block, last=False)

    monkeypatch.setattr(BlockPool, "release", release_to_the_head)


def keep_computed_tokens_on_preemption(monkeypatch):
    def preempt(self, request):
        computed = request.num_computed_tokens
        original(self, request)
        request.num_computed_tokens = computed

    original = Scheduler._preempt
    monkeypatch.setattr(Scheduler, "_preempt", preempt)


def take_the_attention_hit_alone(monkeypatch):
    """Tokens are skipped because attention has them, whatever the states say."""
    monkeypatch.setattr(AlignedStateManager, "longest_hit", lambda self, hashes, max_tokens: max_tokens)
    monkeypatch.setattr(AlignedStateManager, "hit_blocks", lambda self, hashes, num_tokens: [])


def forget_the_group_in_the_key(monkeypatch):
    for kind in (AttentionManager, AlignedStateManager):
        monkeypatch.setattr(kind, "key", lambda self, hash_: BlockKey(hash_, 0))


def hash_a_block_without_its_parent(monkeypatch):
    original = hashing.hash_block
    monkeypatch.setattr(hashing, "hash_block", lambda parent, tokens, extra=b"": original(bytes(16), tokens, extra))


def register_blocks_before_they_are_full(monkeypatch):
    def commit(self, request_id, hashes, computed):
        table = self.tables[request_id]
        if self.caching and len(hashes) >= len(table):
            self.pool.register(table[-1], self.key(hashes[len(table) - 1]))
        return original(self, request_id, hashes, computed)

    original = AttentionManager.commit
    monkeypatch.setattr(
        manager, "extend_chain", lambda request, size, _: extend_chain(request, size, request.num_tokens)
    )
    monkeypatch.setattr(AttentionManager, "commit", commit)


def never_take_what_is_hit(monkeypatch):
    """Blocks of a hit are used without being held."""
    monkeypatch.setattr(BlockPool, "take", lambda self, block: None)


def hit_the_last_token_too(monkeypatch):
    original = manager.CacheManager.lookup

    def lookup(self, request):
        request.output_token_ids.append(0)
        try:
            return original(self, request)
        finally:
            request.output_token_ids.pop()

    monkeypatch.setattr(manager.CacheManager, "lookup", lookup)


def forget_to_zero(monkeypatch):
    original = AttentionManager.allocate

    def allocate(self, request_id, end, effects):
        room = original(self, request_id, end, effects)
        effects.zero_blocks.clear()
        return room

    monkeypatch.setattr(AttentionManager, "allocate", allocate)


def hand_out_the_null_block(monkeypatch):
    original = BlockPool.__init__

    def init(self, num_blocks):
        original(self, num_blocks)
        self._free[0] = None
        self._free.move_to_end(0, last=False)

    monkeypatch.setattr(BlockPool, "__init__", init)


def leak_on_finish(monkeypatch):
    monkeypatch.setattr(AlignedStateManager, "free", lambda self, request_id: self.tables.pop(request_id))


def starve_below_a_block(monkeypatch):
    """The split of old: floor to a block whatever the budget."""

    def floor_always(*, start, proposed, num_tokens, block_size, **_):
        end = start + proposed
        return proposed if end == num_tokens else max(0, end // block_size * block_size - start)

    monkeypatch.setattr(chunking, "aligned_length", floor_always)


FAULTS = [
    register_states_anywhere,
    advance_the_shared_state_in_place,
    release_the_source_before_the_copy,
    keep_computed_tokens_on_preemption,
    take_the_attention_hit_alone,
    forget_the_group_in_the_key,
    hash_a_block_without_its_parent,
    register_blocks_before_they_are_full,
    never_take_what_is_hit,
    hit_the_last_token_too,
    forget_to_zero,
    hand_out_the_null_block,
    leak_on_finish,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_faults_of_the_bookkeeping_are_noticed(fault, monkeypatch):
    fault(monkeypatch)
    with pytest.raises(NOTICED):
        workload_twice()


@pytest.mark.parametrize("budget", [5, 7])
def test_a_starving_split_is_noticed(budget, monkeypatch):
    starve_below_a_block(monkeypatch)
    with pytest.raises(RuntimeError, match="nothing can advance: 0 running, 1 waiting"):
        make(budget=budget).run(toy_request("r", [1] * 30))
