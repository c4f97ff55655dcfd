"""Break the books on purpose, one entry at a time: the audit must notice each."""

import pytest

from staticfire.engine.cache.block_pool import BlockKey
from staticfire.engine.cache.errors import CacheCorruptionError
from toy_engine.factories import toy_engine, toy_request


@pytest.fixture
def engine():
    """Two running requests, one a prefix of the other, in the middle of decoding; 8-token blocks."""
    engine = toy_engine(pattern="MA", block_size=8, num_blocks=40)
    engine.run(toy_request("done", range(30), max_tokens=3))
    engine.add(
        toy_request("r", range(30), arrival=1, max_tokens=30),
        toy_request("s", range(20), arrival=2, max_tokens=30),
    )
    for _ in range(6):
        engine.step()
    engine.scheduler.check_integrity()
    return engine


def tables(engine, group):
    return engine.scheduler.cache.managers[group].tables


def free_block(engine):
    return next(iter(engine.scheduler.cache.pool._free))


def registered_in_table(engine, group=0):
    pool = engine.scheduler.cache.pool
    return next(b for b in tables(engine, group)["r"] if b and pool.key_of(b) is not None)


def leak_a_block(engine):
    engine.scheduler.cache.pool._free.popitem()


def free_a_block_twice(engine):
    engine.scheduler.cache.pool._free[tables(engine, 0)["r"][-1]] = None


def free_a_block_in_use_and_leak_another(engine):
    leak_a_block(engine)
    free_a_block_twice(engine)


def free_the_null_block(engine):
    pool = engine.scheduler.cache.pool
    pool._free[0] = None
    del pool._free[free_block(engine)]


def hold_the_null_block(engine):
    engine.scheduler.cache.pool._ref_counts[0] = 1


def register_the_null_block(engine):
    engine.scheduler.cache.pool._keys[0] = BlockKey(b"x", 0)


def null_block_in_an_attention_table(engine):
    table = tables(engine, 0)["r"]
    engine.scheduler.cache.pool.release(table[-1])
    table[-1] = 0


def one_reference_too_many(engine):
    engine.scheduler.cache.pool._ref_counts[registered_in_table(engine)] += 1


def one_reference_too_few(engine):
    engine.scheduler.cache.pool._ref_counts[registered_in_table(engine)] -= 1


def hold_without_a_table(engine):
    engine.scheduler.cache.pool.allocate()


def table_of_a_request_that_is_gone(engine):
    tables(engine, 0)["ghost"] = []


def table_lost(engine):
    del tables(engine, 1)["r"]


def block_in_two_groups(engine):
    block = tables(engine, 1)["r"][-1]
    tables(engine, 0)["r"].append(block)
    engine.scheduler.cache.pool._ref_counts[block] += 1


def swap_two_attention_blocks(engine):
    table = tables(engine, 0)["r"]
    table[0], table[1] = table[1], table[0]


def attention_block_missing(engine):
    table = tables(engine, 0)["r"]
    engine.scheduler.cache.pool.release(table.pop())


def register_a_block_before_it_is_full(engine):
    pool = engine.scheduler.cache.pool
    block = tables(engine, 0)["r"][-1]
    pool.register(block, BlockKey(b"early", 0))


def register_a_state_off_its_boundary(engine):
    pool = engine.scheduler.cache.pool
    pool.register(tables(engine, 1)["r"][-1], BlockKey(b"early", 1))


def map_points_elsewhere(engine):
    pool = engine.scheduler.cache.pool
    key = next(iter(pool._registered))
    pool._registered[key] = free_block(engine) + 1


def map_entry_lost(engine):
    pool = engine.scheduler.cache.pool
    pool._registered.popitem()


def third_state_held(engine):
    pool, table = engine.scheduler.cache.pool, tables(engine, 1)["r"]
    table[0], table[1] = pool.allocate(), pool.allocate()


def running_state_lost(engine):
    table = tables(engine, 1)["r"]
    engine.scheduler.cache.pool.release(table[-1])
    table[-1] = 0


def request_forgotten(engine):
    del engine.scheduler._requests["r"]


def request_in_both_queues(engine):
    engine.scheduler._waiting.push(engine.requests["r"])


def computed_tokens_without_blocks(engine):
    engine.requests["r"].num_computed_tokens += 100


def running_out_of_order(engine):
    engine.scheduler._running.reverse()


def waiting_with_computed_tokens(engine):
    request = toy_request("w", [1], arrival=9)
    engine.add(request)
    request.num_computed_tokens = 1


MUTATIONS = [
    leak_a_block,
    free_a_block_twice,
    free_a_block_in_use_and_leak_another,
    free_the_null_block,
    hold_the_null_block,
    register_the_null_block,
    null_block_in_an_attention_table,
    one_reference_too_many,
    one_reference_too_few,
    hold_without_a_table,
    table_of_a_request_that_is_gone,
    table_lost,
    block_in_two_groups,
    swap_two_attention_blocks,
    attention_block_missing,
    register_a_block_before_it_is_full,
    register_a_state_off_its_boundary,
    map_points_elsewhere,
    map_entry_lost,
    third_state_held,
    running_state_lost,
    request_forgotten,
    request_in_both_queues,
    computed_tokens_without_blocks,
    running_out_of_order,
    waiting_with_computed_tokens,
]


@pytest.mark.parametrize("corrupt", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_every_corruption_is_noticed(engine, corrupt):
    corrupt(engine)
    with pytest.raises(CacheCorruptionError):
        engine.scheduler.check_integrity()


def test_a_private_state_must_stay_private():
    engine = toy_engine(mode="none", caching=False, block_size=8)
    engine.add(toy_request("r", range(20), max_tokens=9))
    engine.step()
    engine.scheduler.cache.pool.register(tables(engine, 1)["r"][0], BlockKey(b"x", 1))
    with pytest.raises(CacheCorruptionError, match="is not one private state"):
        engine.scheduler.check_integrity()
