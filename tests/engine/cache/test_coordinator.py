"""The hybrid hit against brute force over every boundary."""

from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.aligned_state import AlignedStateManager
from staticfire.engine.cache.attention import AttentionManager
from staticfire.engine.cache.block_pool import BlockPool
from staticfire.engine.cache.coordinator import find_hit, no_hit
from staticfire.engine.cache.single_state import SingleStateManager

SIZE, COUNT = 4, 7
CHAIN = [index.to_bytes(16, "little") for index in range(COUNT)]
REGISTERED = st.sets(st.integers(0, COUNT - 1))


def build(kinds_and_registered):
    pool = BlockPool(100)
    managers = []
    for group, (kind, registered) in enumerate(kinds_and_registered):
        manager = kind(group, SIZE, pool, caching=True, zero_new=False)
        for index in registered:
            pool.register(pool.allocate(), manager.key(CHAIN[index]))
        managers.append(manager)
    return managers


@given(REGISTERED, st.lists(REGISTERED, max_size=3), st.integers(0, COUNT * SIZE + 3))
def test_longest_boundary_that_every_group_has(attention, states, cap):
    managers = build([(AttentionManager, attention)] + [(AlignedStateManager, state) for state in states])
    possible = [
        (index + 1) * SIZE
        for index in range(COUNT)
        if (index + 1) * SIZE <= cap and set(range(index + 1)) <= attention and all(index in state for state in states)
    ]
    hit = find_hit(managers, CHAIN, cap)
    assert hit.num_tokens == max(possible, default=0)
    assert [len(blocks) for blocks in hit.blocks] == [hit.num_tokens // SIZE] * len(managers)
    attention_alone = max(
        ((index + 1) * SIZE for index in range(cap // SIZE) if set(range(index + 1)) <= attention and index < COUNT),
        default=0,
    )
    assert hit.junction == (attention_alone if attention_alone > hit.num_tokens else 0)
    for manager, blocks in zip(managers, hit.blocks, strict=True):
        if blocks:
            assert manager.pool.key_of(blocks[-1]) == manager.key(CHAIN[len(blocks) - 1])


def test_a_group_without_kept_states_hits_nothing():
    managers = build([(AttentionManager, range(COUNT)), (SingleStateManager, ())])
    hit = find_hit(managers, CHAIN, COUNT * SIZE)
    assert hit.num_tokens == 0
    assert hit.blocks == ([], [])


def test_tables_of_no_hit_are_separate_lists():
    managers = build([(AttentionManager, ()), (AlignedStateManager, ())])
    one, two = no_hit(managers).blocks
    assert one is not two
