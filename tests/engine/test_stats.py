"""What the engine counts, against scenarios counted by hand."""

from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.scheduler.scheduler import Scheduler
from staticfire.engine.stats import END_TO_END, INTER_TOKEN, TIME_TO_FIRST_TOKEN, Counters, Distribution, EngineStats
from toy_engine.drive import Engine, make_engine
from toy_engine.factories import VOCAB, toy_config, toy_request

PROMPT = [(5 * index + index // 7) % VOCAB for index in range(64)]


class Clock:
    """Shows the time it is set to."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def engine(clock: Clock, counters: Counters | None = None, **config: Any) -> Engine:
    resolved = toy_config(**{"pattern": "A", "block_size": 8, **config})
    layout = plan_cache(resolved)
    return make_engine(Scheduler(resolved, layout, (), counters or Counters(clock)), layout, VOCAB)


def buckets(distribution: Distribution, bounds: tuple[float, ...]) -> dict[float, int]:
    """Bound -> values in its bucket, empty ones left out."""
    return {bound: n for bound, n in zip((*bounds, float("inf")), distribution.counts, strict=True) if n}


def test_one_request_token_by_token():
    clock = Clock()
    toy = engine(clock, num_blocks=11)
    clock.time = 10.0
    toy.add(toy_request("a", PROMPT[:20], max_tokens=3, ignore_eos=True))
    before = toy.scheduler.stats()
    assert (before.num_waiting, before.num_running, before.kv_cache_usage) == (1, 0, 0.0)
    assert (before.prompt_tokens, before.generation_tokens, before.prefix_cache_queries) == (0, 0, 0)

    clock.time = 10.5
    toy.step()
    after = toy.scheduler.stats()
    assert (after.num_waiting, after.num_running) == (0, 1)
    assert after.kv_cache_usage == 1 - 7 / 10  # 20 tokens in blocks of 8
    assert (after.prompt_tokens, after.generation_tokens) == (20, 1)
    assert (after.prefix_cache_queries, after.prefix_cache_hits) == (20, 0)
    assert buckets(after.time_to_first_token, TIME_TO_FIRST_TOKEN) == {0.5: 1}

    clock.time = 10.75
    toy.step()
    clock.time = 12.0
    toy.step()
    ended = toy.scheduler.stats()
    assert (ended.num_running, ended.num_waiting, ended.kv_cache_usage) == (0, 0, 0.0)
    assert (ended.prompt_tokens, ended.generation_tokens) == (20, 3)
    assert buckets(ended.inter_token, INTER_TOKEN) == {0.3: 1, 2.5: 1}
    assert ended.inter_token.total == 0.25 + 1.25
    assert buckets(ended.end_to_end, END_TO_END) == {2.0: 1}
    assert (ended.finished_length, ended.finished_stop, ended.finished_abort) == (1, 0, 0)


def test_a_second_request_finds_the_whole_blocks_before_its_last_token():
    toy = engine(Clock())
    toy.run(toy_request("a", PROMPT[:24], max_tokens=1))
    toy.run(toy_request("b", PROMPT[:24], arrival=1, max_tokens=1))
    stats = toy.scheduler.stats()
    assert (stats.prefix_cache_queries, stats.prefix_cache_hits) == (48, 16)
    assert (stats.prompt_tokens, stats.generation_tokens) == (48, 2)


def test_requests_that_do_not_read_the_cache_are_no_queries():
    toy = engine(Clock(), caching=False)
    toy.run(toy_request("a", PROMPT[:24], max_tokens=1))
    assert toy.scheduler.stats().prefix_cache_queries == 0
    toy = engine(Clock())
    toy.add(toy_request("b", PROMPT[:24], max_tokens=1, prompt_logprobs=0))
    toy.scheduler.schedule()
    assert toy.scheduler.stats().prefix_cache_queries == 0


def test_a_preempted_request_counts_its_prompt_once_and_its_wait_between_tokens():
    clock = Clock()
    toy = engine(clock)
    toy.add(toy_request("a", PROMPT[:10], max_tokens=3))
    toy.step()
    toy.scheduler._preempt(toy.scheduler._running.pop())
    lost = toy.scheduler.stats()
    assert (lost.num_preemptions, lost.num_running, lost.num_waiting) == (1, 0, 1)
    clock.time = 0.7
    toy.run()
    stats = toy.scheduler.stats()
    assert (stats.num_preemptions, stats.prompt_tokens, stats.generation_tokens) == (1, 10, 3)
    assert (stats.prefix_cache_queries, stats.prefix_cache_hits) == (10, 0)
    assert buckets(stats.inter_token, INTER_TOKEN) == {0.01: 1, 0.75: 1}
    assert stats.time_to_first_token.count == 1


def test_a_prompt_cut_into_chunks_is_counted_when_it_is_done():
    toy = engine(Clock(), budget=8)
    toy.add(toy_request("a", PROMPT[:20], max_tokens=1))
    counted = []
    for _ in range(3):
        toy.step()
        counted.append(toy.scheduler.stats().prompt_tokens)
    assert counted == [0, 0, 20]


def test_how_requests_end():
    toy = engine(Clock())
    free = toy.run(toy_request("free", PROMPT[:5], max_tokens=4, ignore_eos=True))["free"]
    toy.run(toy_request("stopped", PROMPT[:5], arrival=1, max_tokens=4, stop_token_ids=(free[0],)))
    toy.add(toy_request("running", PROMPT[:5], arrival=2, max_tokens=9))
    toy.step()
    toy.add(toy_request("waiting", PROMPT[:5], arrival=3, max_tokens=9))
    assert toy.scheduler.abort("running")
    assert toy.scheduler.abort("waiting")
    assert not toy.scheduler.abort("waiting")
    stats = toy.scheduler.stats()
    assert (stats.finished_length, stats.finished_stop, stats.finished_abort) == (1, 1, 2)
    assert stats.end_to_end.count == 2


def test_counters_outlive_their_scheduler():
    counters = Counters(Clock())
    for arrival in range(2):
        engine(Clock(), counters).run(toy_request("a", PROMPT[:20], arrival=arrival, max_tokens=3))
    assert counters.generation_tokens == 6
    assert counters.prompt_tokens == 40


@given(st.lists(st.floats(min_value=0, max_value=10_000), max_size=40))
def test_a_bucket_holds_what_lies_above_the_bound_before_and_not_above_its_own(values):
    clock, counters = Clock(), Counters()
    counters.now = clock
    for value in values:
        request = toy_request("a", [1])
        request.output_token_ids.append(1)
        counters.token(request, value)
    found = counters.snapshot(num_running=0, num_waiting=0, kv_cache_usage=0.0).time_to_first_token
    bounds = (float("-inf"), *TIME_TO_FIRST_TOKEN, float("inf"))
    expected = [sum(low < value <= high for value in values) for low, high in pairwise(bounds)]
    assert list(found.counts) == expected
    assert found.total == sum(values)


def test_stats_cross_a_wire_unchanged():
    toy = engine(Clock())
    toy.run(toy_request("a", PROMPT[:24], max_tokens=2))
    stats = toy.scheduler.stats()
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(stats), type=EngineStats) == stats
