from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.block_pool import BlockKey, BlockPool
from staticfire.engine.cache.errors import CacheCorruptionError


def key(name: int, group: int = 0) -> BlockKey:
    return BlockKey(bytes([name]) * 16, group)


def test_null_block_is_never_handed_out():
    pool = BlockPool(4)
    assert sorted(pool.allocate() for _ in range(3)) == [1, 2, 3]
    with pytest.raises(CacheCorruptionError, match="all 3 blocks are in use"):
        pool.allocate()


@pytest.mark.parametrize("num_blocks", [-1, 0, 1])
def test_a_pool_needs_a_block_besides_the_null_block(num_blocks):
    with pytest.raises(ValueError, match=f"num_blocks={num_blocks}: must be at least 2"):
        BlockPool(num_blocks)


def test_registered_block_is_found_while_held_and_while_free():
    pool = BlockPool(3)
    block = pool.allocate()
    assert pool.register(block, key(1))
    assert pool.find(key(1)) == block
    pool.release(block)
    assert pool.find(key(1)) == block
    assert pool.is_free(block)
    pool.take(block)
    assert not pool.is_free(block)
    pool.check({block: 1})


def test_content_is_forgotten_when_the_block_is_handed_out_again():
    pool = BlockPool(2)
    block = pool.allocate()
    pool.register(block, key(1))
    pool.release(block)
    assert pool.allocate() == block
    assert pool.find(key(1)) is None
    assert pool.key_of(block) is None


def test_groups_do_not_see_each_others_content():
    pool = BlockPool(4)
    attention, state = pool.allocate(), pool.allocate()
    pool.register(attention, key(1, group=0))
    pool.register(state, key(1, group=1))
    assert pool.find(key(1, group=0)) == attention
    assert pool.find(key(1, group=1)) == state


def test_worthless_blocks_go_first_then_the_longest_free():
    pool = BlockPool(5)
    first, second, third, private = (pool.allocate() for _ in range(4))
    for name, block in enumerate((first, second, third)):
        pool.register(block, key(name))
    for block in (second, first, private, third):
        pool.release(block)
    assert [pool.allocate() for _ in range(4)] == [private, second, first, third]


def test_first_registered_wins_and_the_duplicate_stays_private():
    pool = BlockPool(4)
    first, duplicate = pool.allocate(), pool.allocate()
    assert pool.register(first, key(1))
    assert not pool.register(duplicate, key(1))
    assert pool.key_of(duplicate) is None
    assert pool.register(first, key(1)), "registering again changes nothing"
    pool.check({first: 1, duplicate: 1})


def test_a_block_cannot_stand_for_two_prefixes():
    pool = BlockPool(3)
    block = pool.allocate()
    pool.register(block, key(1))
    with pytest.raises(CacheCorruptionError, match="already holds"):
        pool.register(block, key(2))


def test_releasing_what_nobody_holds_is_an_error():
    pool = BlockPool(3)
    block = pool.allocate()
    pool.release(block)
    with pytest.raises(CacheCorruptionError, match=f"block {block} is held by nobody"):
        pool.release(block)


@given(
    st.lists(st.tuples(st.sampled_from(["allocate", "take", "release", "register"]), st.integers(0, 9)), max_size=80)
)
def test_pool_agrees_with_a_plain_list_of_holders(actions):
    """The model: a list of who holds what, and what every block was last registered as."""
    pool = BlockPool(6)
    held: Counter[int] = Counter()
    names: dict[int, int] = {}
    for action, value in actions:
        blocks = sorted(held)
        if action == "allocate" and len(held) < 5:
            block = pool.allocate()
            assert block not in held
            names.pop(block, None)
            held[block] = 1
        elif action == "take" and value in names.values():
            block = next(block for block, name in names.items() if name == value)
            assert pool.find(key(value)) == block
            pool.take(block)
            held[block] += 1
        elif action == "release" and blocks:
            block = blocks[value % len(blocks)]
            pool.release(block)
            held[block] -= 1
            held += Counter()
        elif action == "register" and blocks:
            block = blocks[value % len(blocks)]
            if block not in names and value not in names.values():
                assert pool.register(block, key(value))
                names[block] = value
        pool.check(held)
        assert pool.num_free == 5 - len(held)
        for block, name in names.items():
            assert pool.find(key(name)) == block
