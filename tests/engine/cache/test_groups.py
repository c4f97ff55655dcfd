"""One cache group by itself: what it holds for a request, chunk by chunk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.aligned_state import AlignedStateManager
from staticfire.engine.cache.attention import AttentionManager
from staticfire.engine.cache.base import UNLIMITED, StepEffects
from staticfire.engine.cache.block_pool import BlockPool
from staticfire.engine.cache.errors import CacheCorruptionError
from staticfire.engine.cache.recurrent import RECURRENT_MODES
from staticfire.engine.cache.single_state import SingleStateManager
from staticfire.engine.scheduler.output import StateCopy


def hashes(count: int) -> list[bytes]:
    return [index.to_bytes(16, "little") for index in range(count)]


def make(kind, block_size=16, caching=True, num_blocks=50):
    return kind(0, block_size, BlockPool(num_blocks), caching=caching, zero_new=kind is AttentionManager)


def test_modes_are_registered_by_name():
    assert {"none": SingleStateManager, "align": AlignedStateManager} == RECURRENT_MODES


class TestAligned:
    def test_state_after_whole_blocks_stands_in_the_last_slot(self):
        group, effects = make(AlignedStateManager), StepEffects()
        group.adopt("r", [])
        assert group.allocate("r", 48, effects) == 48
        table = group.tables["r"]
        assert table[:2] == [0, 0]
        assert table[2] != 0
        assert effects.state_copies == [], "a request that starts at 0 has nothing to copy"
        group.commit("r", hashes(3), 48)
        assert [group.longest_hit(hashes(3), limit) for limit in (47, 48, 60)] == [0, 48, 48]

    def test_crossing_a_boundary_copies_and_frees_one_step_later(self):
        group, effects = make(AlignedStateManager), StepEffects()
        group.adopt("r", [])
        group.allocate("r", 16, effects)
        group.commit("r", hashes(1), 16)
        old = group.tables["r"][0]
        group.allocate("r", 17, effects)
        new = group.tables["r"][1]
        assert effects.state_copies == [StateCopy(0, old, new)]
        assert not group.pool.is_free(old), "the copy has not run yet"
        group.commit("r", hashes(1), 17)
        assert group.pool.is_free(old)
        assert group.tables["r"] == [0, new]
        assert group.longest_hit(hashes(1), 16) == 16, "free, but still to be found"

    def test_inside_a_block_the_state_advances_in_place_and_is_not_registered(self):
        group, effects = make(AlignedStateManager), StepEffects()
        group.adopt("r", [])
        for computed in (5, 11, 15):
            assert group.allocate("r", computed, effects) == 16
            group.commit("r", hashes(1), computed)
            assert group.pool.key_of(group.tables["r"][0]) is None
        group.allocate("r", 16, effects)
        group.commit("r", hashes(1), 16)
        assert group.pool.key_of(group.tables["r"][0]) == group.key(hashes(1)[0])
        assert effects.state_copies == []

    def test_an_unaligned_chunk_end_never_registers_an_earlier_block(self):
        """2048-token blocks, chunks [1866, 1160]: block 0 was never at its boundary."""
        group, effects = make(AlignedStateManager, block_size=2048), StepEffects()
        group.adopt("r", [])
        for end in (1866, 3026):
            group.allocate("r", end, effects)
            group.commit("r", hashes(1), end)
        assert group.longest_hit(hashes(1), 3025) == 0

    def test_hit_starts_from_the_deepest_state_and_leaves_it_untouched(self):
        group, effects = make(AlignedStateManager), StepEffects()
        group.adopt("a", [])
        for end in (16, 48):
            group.allocate("a", end, effects)
            group.commit("a", hashes(3), end)
        cached = group.tables["a"][2]
        assert group.longest_hit(hashes(3), 47) == 16
        assert group.hit_blocks(hashes(3), 48) == [0, 0, cached]
        group.adopt("b", group.hit_blocks(hashes(3), 48))
        effects = StepEffects()
        group.allocate("b", 49, effects)
        assert effects.state_copies == [StateCopy(0, cached, group.tables["b"][3])]
        assert group.tables["b"][3] != cached

    def test_slot_index_uses_the_groups_own_block_size(self):
        """781 and 8399 were seen where another size was the divisor."""
        group, effects = make(AlignedStateManager, block_size=2176), StepEffects()
        group.adopt("r", [])
        group.allocate("r", 100096, effects)
        assert len(group.tables["r"]) - 1 == 45
        group.adopt("s", [])
        group.allocate("s", 134400, effects)
        assert len(group.tables["s"]) - 1 == (134400 - 1) // 2176 == 61

    def test_never_more_than_two_states_and_one_between_steps(self):
        group = make(AlignedStateManager, block_size=4, num_blocks=4)
        group.adopt("r", [])
        for end in (3, 4, 5, 8, 20, 21, 22, 30):
            needed = group.blocks_needed(len(group.tables["r"]), end)
            assert needed <= group.pool.num_free
            group.allocate("r", end, StepEffects())
            assert group.pool.num_usable - group.pool.num_free <= group.max_blocks(end)
            group.commit("r", hashes(8), end)
            assert group.pool.num_usable - group.pool.num_free == 1

    def test_freeing_with_a_copy_outstanding_frees_both_states(self):
        group = make(AlignedStateManager)
        group.adopt("r", [])
        group.allocate("r", 16, StepEffects())
        group.commit("r", hashes(1), 16)
        group.allocate("r", 17, StepEffects())
        group.free("r")
        assert group.pool.num_free == group.pool.num_usable
        group.adopt("r", [])
        group.allocate("r", 16, StepEffects())
        group.commit("r", hashes(1), 16)
        group.check("r", hashes(1), 16)

    def test_hit_off_the_boundary_is_refused(self):
        with pytest.raises(CacheCorruptionError, match="no state is registered at 16 tokens"):
            make(AlignedStateManager).hit_blocks(hashes(2), 16)

    @given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 9))
    def test_registered_exactly_where_a_chunk_ended_on_a_boundary(self, lengths, block_size):
        group, end = make(AlignedStateManager, block_size=block_size, num_blocks=600), 0
        chain, ends = hashes(sum(lengths) // block_size), set()
        group.adopt("r", [])
        for length in lengths:
            end += length
            group.allocate("r", end, StepEffects())
            group.commit("r", chain, end)
            group.check("r", chain, end)
            ends.add(end)
        for index, hash_ in enumerate(chain):
            found = group.pool.find(group.key(hash_)) is not None
            assert found == ((index + 1) * block_size in ends)


class TestSingle:
    def test_one_block_from_first_to_last_token(self):
        group, effects = make(SingleStateManager, block_size=256), StepEffects()
        group.adopt("r", [])
        for end in (7, 16, 17, 200):
            assert group.allocate("r", end, effects) == UNLIMITED
            assert group.commit("r", hashes(0), end) == UNLIMITED
            group.check("r", hashes(0), end)
        assert len(group.tables["r"]) == 1
        assert effects == StepEffects()
        assert group.longest_hit(hashes(9), 200) == 0
        assert group.hit_blocks(hashes(9), 0) == []
        group.free("r")
        assert group.pool.num_free == group.pool.num_usable


class TestAttention:
    def test_blocks_cover_the_chunk_and_new_ones_are_zeroed(self):
        group, effects = make(AttentionManager), StepEffects()
        group.adopt("r", [])
        assert [group.blocks_needed(0, end) for end in (1, 16, 17)] == [1, 1, 2]
        assert group.allocate("r", 33, effects) == 48
        assert effects.zero_blocks == group.tables["r"]
        group.allocate("r", 48, effects)
        assert len(group.tables["r"]) == 3

    def test_only_full_blocks_are_registered(self):
        group = make(AttentionManager)
        group.adopt("r", [])
        group.allocate("r", 33, StepEffects())
        assert group.commit("r", hashes(3), 31) == 32
        assert group.longest_hit(hashes(3), 100) == 16
        assert group.commit("r", hashes(3), 33) == 48
        assert group.longest_hit(hashes(3), 100) == 32

    def test_hit_ends_at_the_first_missing_block(self):
        group = make(AttentionManager, num_blocks=5)
        group.adopt("r", [])
        group.allocate("r", 64, StepEffects())
        group.commit("r", hashes(4), 64)
        group.free("r")
        group.adopt("s", [])
        group.allocate("s", 16, StepEffects())
        assert group.longest_hit(hashes(4), 64) == 48, "the deepest block is evicted first"

    def test_no_registration_without_caching(self):
        group = make(AttentionManager, caching=False)
        group.adopt("r", [])
        group.allocate("r", 32, StepEffects())
        assert group.commit("r", [], 32) == UNLIMITED
        assert group.pool.key_of(group.tables["r"][0]) is None

    def test_a_request_has_one_table(self):
        group = make(AttentionManager)
        group.adopt("r", [])
        with pytest.raises(CacheCorruptionError, match="already has a table"):
            group.adopt("r", [])
