"""The next request goes where the least is in front of it."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.client.balance import Balancer
from staticfire.engine.wire.messages import Load

loads = st.builds(Load, st.integers(0, 50), st.integers(0, 50))


def test_equal_engines_take_turns():
    balancer = Balancer([0, 1, 2])
    assert [balancer.choose([0, 1, 2], {}) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_what_was_published_counts_and_waiting_counts_more():
    balancer = Balancer([0, 1])
    balancer.hear({0: Load(running=7, waiting=0), 1: Load(running=0, waiting=2)})
    assert balancer.choose([0, 1], {}) == 0, "7 is less than 2 * 4"
    assert balancer.choose([0, 1], {}) == 1, "7 + 4 is not"


def test_a_new_report_takes_the_place_of_what_was_sent():
    balancer = Balancer([0, 1])
    for _ in range(6):
        balancer.choose([0], {})
    assert balancer.choose([0, 1], {}) == 1
    balancer.hear({0: Load(0, 0)})
    assert balancer.choose([0, 1], {}) == 0
    assert balancer.loads == {0: Load(0, 0), 1: Load(0, 0)}


def test_own_requests_decide_between_equals():
    assert Balancer([0, 1]).choose([0, 1], {0: 1}) == 1


def test_engines_of_others_are_passed_over():
    balancer = Balancer([1])
    balancer.hear({0: Load(0, 0), 1: Load(5, 5)})
    assert balancer.loads == {1: Load(5, 5)}


@given(published=st.dictionaries(st.integers(0, 3), loads, min_size=1), number=st.integers(1, 60))
def test_no_engine_is_chosen_that_has_more_than_another(published: dict[int, Load], number: int):
    """Against a plain count: after each choice, what the chosen one had before was the least."""
    engines = sorted(published)
    balancer = Balancer(engines)
    balancer.hear(published)
    sent: Counter[int] = Counter()
    for _ in range(number):
        chosen = balancer.choose(engines, {})
        scores = {e: published[e].running + 4 * (published[e].waiting + sent[e]) for e in engines}
        assert scores[chosen] == min(scores.values())
        sent[chosen] += 1


@given(dead=st.sets(st.integers(0, 3), max_size=3), number=st.integers(1, 20))
def test_only_the_living_are_chosen(dead: set[int], number: int):
    alive = [engine for engine in range(4) if engine not in dead]
    balancer = Balancer(range(4))
    assert {balancer.choose(alive, {}) for _ in range(number)} <= set(alive)
