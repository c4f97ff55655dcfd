"""Losing all blocks, at any step, changes no token."""

import pytest

from staticfire.engine.request import RequestStatus
from toy_engine.factories import toy_engine, toy_request

PROMPT = [(5 * index + index // 7) % 50 for index in range(64)]

CONFIGS = [
    {"pattern": "A", "caching": True},
    {"pattern": "A", "caching": False},
    {"pattern": "MA", "mode": "none", "caching": False},
    {"pattern": "MA", "mode": "align", "caching": True},
    {"pattern": "M", "mode": "align", "caching": True},
    {"pattern": "MMMA", "mode": "align", "caching": True, "budget": 5},
    {"pattern": "MA", "mode": "none", "caching": False, "chunked": False},
]


def requests():
    return [
        toy_request("a", PROMPT[:21], arrival=0, max_tokens=12),
        toy_request("b", PROMPT[:33], arrival=1, max_tokens=9),
        toy_request("c", [*PROMPT[:16], 1, 2], arrival=2, max_tokens=14),
    ]


def preempt_last(engine):
    scheduler = engine.scheduler
    victim = scheduler._running.pop()
    scheduler._preempt(victim)
    return victim


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_preempted_at_every_step_outputs_are_the_same(config):
    config = {"block_size": 8, **config}
    plain = toy_engine(**config)
    expected = plain.run(*requests())
    for step in range(1, len(plain.steps)):
        engine = toy_engine(**config)
        engine.add(*requests())
        for _ in range(step):
            engine.step()
        victim = preempt_last(engine)
        assert victim.status is RequestStatus.PREEMPTED
        engine.scheduler.check_integrity()
        assert engine.run() == expected
        assert victim.num_preemptions == 1


def test_one_lone_request_preempted_at_every_step_resumes_where_a_state_was_kept():
    for step in range(1, 25):
        engine = toy_engine(block_size=8)
        request = toy_request("r", PROMPT[:30], max_tokens=25)
        engine.add(request)
        for _ in range(step):
            engine.step()
        computed = request.num_computed_tokens
        preempt_last(engine)
        before = len(request.chunks)
        engine.run()
        assert request.chunks[before][0] == computed // 8 * 8
        assert request.num_cached_tokens == 0, "counted at the first scheduling only"


def test_without_kept_states_a_resumed_request_starts_at_zero():
    engine = toy_engine(mode="none", caching=False)
    request = toy_request("r", PROMPT[:30], max_tokens=8)
    engine.add(request)
    for _ in range(3):
        engine.step()
    preempt_last(engine)
    engine.run()
    assert request.chunks == [(0, 30), (30, 1), (31, 1), (0, 33), (33, 1), (34, 1), (35, 1), (36, 1)]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_a_pool_too_small_for_all_preempts_and_still_gives_the_same_tokens(config):
    config = {"block_size": 8, "max_num_seqs": 3, **config}
    expected = toy_engine(**config).run(*requests())
    probe = toy_engine(**config)
    alone = max(
        probe.scheduler.cache.max_blocks(r.num_prompt_tokens + r.sampling_params.max_tokens) for r in requests()
    )
    total = 0
    for extra in range(1, 8):
        engine = toy_engine(**config, num_blocks=alone + extra)
        assert engine.run(*requests()) == expected
        total += sum(request.num_preemptions for request in engine.requests.values())
        assert engine.requests["a"].num_preemptions == 0, "the first to come is never preempted"
    if config["pattern"] != "M":
        assert total > 0, "the pool was never too small: the test shows nothing"


def test_preempted_are_named_and_nobody_is_admitted_in_that_step():
    engine = toy_engine(pattern="A", block_size=4, caching=False, num_blocks=9)
    engine.add(
        toy_request("a", [1] * 12, arrival=0, max_tokens=9),
        toy_request("b", [2] * 12, arrival=1, max_tokens=9),
        toy_request("c", [3] * 4, arrival=2, max_tokens=9),
    )
    while not (engine.steps and engine.steps[-1].preempted):
        engine.step()
    step = engine.steps[-1]
    admitted = {c.request_id for c in step.chunks} - {c.request_id for c in engine.steps[-2].chunks}
    assert not admitted
    assert set(step.preempted).isdisjoint(chunk.request_id for chunk in step.chunks)
    engine.run()
