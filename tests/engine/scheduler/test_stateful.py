"""Requests come, go and are preempted in any order; after every step every page is compared with recomputation."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from staticfire.engine.errors import RequestError
from staticfire.engine.request import Request, RequestStatus
from toy_engine.drive import Engine
from toy_engine.factories import toy_engine, toy_request

STEMS = ([(3 * index + 1) % 50 for index in range(60)], [(11 * index + 5) % 50 for index in range(60)])
CONFIGS = st.fixed_dictionaries(
    {
        "pattern": st.sampled_from(["A", "M", "MA", "MMMA", "MMAAA"]),
        "block_size": st.sampled_from([1, 3, 4, 8, 16]),
        "mode": st.sampled_from(["none", "align", "align", "align"]),
        "caching": st.sampled_from([True, True, True, False]),
        "num_blocks": st.integers(12, 60),
        "budget": st.sampled_from([1, 3, 7, 8, 16, 20, 64]),
        "max_num_seqs": st.integers(1, 4),
        "max_len": st.sampled_from([40, 80]),
        "threshold": st.sampled_from([0, 0, 5, 17]),
        "policy": st.sampled_from(["fcfs", "priority"]),
    }
)


def plain_output(request: Request, config: dict[str, Any], eos: tuple[int, ...]) -> list[int]:
    """The tokens of a request that has an engine without caching, splitting or company to itself."""
    config = {**config, "mode": "none", "caching": False, "num_blocks": 400, "budget": 500, "threshold": 0}
    alone = Request("alone", list(request.prompt_token_ids), request.sampling_params, 0)
    return toy_engine(eos=eos, **config).run(alone)["alone"]


class SchedulerMachine(RuleBasedStateMachine):
    """Rules are what users do; the referee inside `Engine.step` checks each step."""

    engine: Engine

    @initialize(config=CONFIGS, eos=st.sampled_from([(), (7,)]))
    def start(self, config, eos):
        if "M" in config["pattern"] and config["mode"] == "none":
            config["caching"] = False
        self.config, self.eos = config, eos
        self.engine = toy_engine(eos=eos, **config)
        self.accepted: list[Request] = []

    @rule(
        stem=st.sampled_from(STEMS),
        shared=st.integers(0, 40),
        own=st.lists(st.integers(0, 49), max_size=4),
        max_tokens=st.integers(1, 12),
        priority=st.integers(0, 2),
        forced=st.one_of(st.none(), st.none(), st.lists(st.integers(0, 49), min_size=1, max_size=5).map(tuple)),
        prompt_logprobs=st.sampled_from([None, None, None, 0]),
    )
    def add(self, stem, shared, own, max_tokens, priority, forced, prompt_logprobs):
        number = len(self.engine.requests)
        request = toy_request(
            f"r{number}",
            stem[:shared] + own,
            arrival=number,
            max_tokens=max_tokens,
            priority=priority,
            forced_token_ids=forced,
            prompt_logprobs=prompt_logprobs,
        )
        try:
            self.engine.add(request)
        except RequestError:
            return
        self.accepted.append(request)

    @rule(count=st.integers(1, 6))
    def step(self, count):
        for _ in range(count):
            self.engine.step()

    @precondition(lambda self: self.accepted)
    @rule(pick=st.integers(0, 100))
    def abort(self, pick):
        request = self.accepted[pick % len(self.accepted)]
        alive = not request.status.finished
        assert self.engine.scheduler.abort(request.request_id) == alive

    @precondition(lambda self: self.engine.scheduler.num_running)
    @rule()
    def preempt(self):
        scheduler = self.engine.scheduler
        scheduler._preempt(scheduler._running.pop())

    @invariant()
    def books_balance(self):
        self.engine.scheduler.check_integrity()
        pool = self.engine.scheduler.cache.pool
        if not self.engine.scheduler.num_running:
            assert pool.num_free == pool.num_usable

    def teardown(self):
        if not hasattr(self, "engine"):
            return
        self.engine.run()
        for request in self.accepted:
            assert request.num_cached_tokens < request.num_prompt_tokens
            if request.status is RequestStatus.FINISHED_ABORTED:
                continue
            assert request.status.finished
            assert request.output_token_ids == plain_output(request, self.config, self.eos)
        self.books_balance()


def test_any_order_of_events():
    run_state_machine_as_test(
        SchedulerMachine,
        settings=settings(
            max_examples=150, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )


@pytest.mark.nightly
def test_any_order_of_events_at_length():
    run_state_machine_as_test(
        SchedulerMachine,
        settings=settings(
            max_examples=2000, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
        ),
    )
