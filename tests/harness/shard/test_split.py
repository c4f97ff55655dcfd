"""Laws of sharding: everything exactly once, nothing empty, no order, a bound on the longest, groups kept."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.shard.split import Item, Shard, count_for, expected, split

SECONDS = st.floats(0, 1000, allow_nan=False)


@st.composite
def work(draw):
    count = draw(st.integers(0, 40))
    groups = draw(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=count, max_size=count))
    items = [Item(f"i{number}", group) for number, group in enumerate(groups)]
    known = draw(st.sets(st.sampled_from([item.id for item in items]))) if items else set()
    return items, {name: draw(SECONDS) for name in sorted(known)}


@given(work(), st.integers(1, 12), st.floats(0, 20))
def test_each_item_is_in_exactly_one_shard_and_none_is_empty_while_there_is_work(given_work, count, setup):
    items, durations = given_work
    shards = split(items, count, durations, setup)
    assert len(shards) == count
    assert sorted(name for shard in shards for name in shard.ids) == sorted(item.id for item in items)
    assert sum(not shard.ids for shard in shards) == max(0, count - len(items))


@given(work(), st.integers(1, 8), st.randoms())
def test_the_order_of_the_items_does_not_matter(given_work, count, random):
    items, durations = given_work
    shuffled = list(items)
    random.shuffle(shuffled)
    assert split(shuffled, count, durations) == split(items, count, durations)


@given(work(), st.integers(1, 8))
def test_without_cost_of_groups_the_longest_shard_is_bounded(given_work, count):
    items, durations = given_work
    seconds = expected(items, durations)
    longest = max(shard.seconds for shard in split(items, count, durations, setup=0))
    assert longest <= sum(seconds.values()) / count + max(seconds.values(), default=0) + 1e-2


@given(work(), st.integers(1, 8), st.floats(0, 20))
def test_the_seconds_of_a_shard_are_those_of_its_items_and_groups(given_work, count, setup):
    items, durations = given_work
    seconds, group_of = expected(items, durations), {item.id: item.group for item in items}
    for shard in split(items, count, durations, setup):
        groups = {group_of[name] for name in shard.ids} - {""}
        total = sum(seconds[name] for name in shard.ids) + setup * len(groups)
        assert math.isclose(shard.seconds, total, abs_tol=1e-2)
        assert shard.predicted == sum(name not in durations for name in shard.ids)


@given(work(), st.integers(1, 8))
def test_items_of_a_group_stand_together_in_a_shard(given_work, count):
    items, durations = given_work
    group_of = {item.id: item.group for item in items}
    for shard in split(items, count, durations):
        order = [group_of[name] for name in shard.ids]
        assert order == sorted(order, key=order.index)


def test_a_dear_group_is_not_cut_and_a_cheap_one_is():
    items = [Item(f"a{number}", "a") for number in range(4)] + [Item(f"b{number}", "b") for number in range(2)]
    dear = split(items, 2, setup=100)
    assert {shard.ids for shard in dear} == {("a0", "a1", "a2", "a3"), ("b0", "b1")}
    assert sorted(len(shard.ids) for shard in split(items, 2, setup=0)) == [3, 3]


def test_one_long_test_and_many_short_ones_leave_no_shard_empty():
    # pytest-split left the last of these groups empty, and pytest exits 5 for it.
    items = [Item("long"), *(Item(f"short{number}") for number in range(20))]
    shards = split(items, 7, {"long": 100.0, **{f"short{number}": 0.1 for number in range(20)}})
    assert all(shard.ids for shard in shards)
    assert ("long",) in {shard.ids for shard in shards}


def test_without_timings_shards_are_equal_in_number():
    items = [Item(f"i{number:02}") for number in range(10)]
    assert sorted(len(shard.ids) for shard in split(items, 3)) == [3, 3, 4]


def test_what_is_unknown_is_taken_for_its_group_then_for_everything():
    items = [Item("a1", "a"), Item("a2", "a"), Item("b1", "b"), Item("c1", "c")]
    assert expected(items, {"a1": 10.0, "b1": 2.0}) == {"a1": 10.0, "a2": 10.0, "b1": 2.0, "c1": 6.0}
    assert expected(items, {}) == dict.fromkeys(("a1", "a2", "b1", "c1"), 1.0)


def test_as_few_shards_as_a_time_limit_needs():
    items = [Item(f"i{number}") for number in range(10)]
    assert count_for(items, 1, 50, dict.fromkeys((item.id for item in items), 30.0)) == 5
    assert count_for(items, 1, 3, dict.fromkeys((item.id for item in items), 30.0)) == 3
    assert count_for([], 1, 3, {}) == 1


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        split([Item("a")], 0)
    with pytest.raises(ValueError, match="twice"):
        split([Item("a"), Item("a", "b")], 1)
    assert split([], 2) == (Shard((), 0.0, 0), Shard((), 0.0, 0))


@given(work(), st.floats(0.1, 30), st.integers(1, 20))
def test_a_time_limit_is_kept_or_the_most_shards_are_used(given_work, minutes, most):
    items, durations = given_work
    count = count_for(items, minutes, most, durations)
    longest = max(shard.seconds for shard in split(items, count, durations))
    assert 1 <= count <= max(1, min(most, len(items)))
    assert longest <= 60 * minutes or count == max(1, min(most, len(items)))
