"""Budget, order, ends and misuse."""

import pytest

from staticfire.engine.request import RequestStatus
from staticfire.engine.scheduler.output import StepOutput
from toy_engine.factories import toy_engine, toy_request, toy_scheduler


def lengths(step):
    return {chunk.request_id: len(chunk.token_ids) for chunk in step.chunks}


def test_running_first_then_waiting_until_the_budget_is_spent():
    engine = toy_engine(pattern="A", budget=10, caching=False)
    engine.add(*(toy_request(name, [1] * 8, arrival=i, max_tokens=3) for i, name in enumerate("abc")))
    for _ in range(4):
        engine.step()
    assert [lengths(step) for step in engine.steps] == [
        {"a": 8, "b": 2},
        {"a": 1, "b": 6, "c": 3},
        {"a": 1, "b": 1, "c": 5},
        {"b": 1, "c": 1},
    ]


def test_at_most_max_num_seqs_run():
    engine = toy_engine(max_num_seqs=2, budget=100)
    engine.run(*(toy_request(f"{i}", [1] * 4, arrival=i, max_tokens=3) for i in range(5)))
    assert max(len(step.chunks) for step in engine.steps) == 2


def test_long_prefill_threshold_caps_one_request_in_one_step():
    engine = toy_engine(pattern="A", budget=100, threshold=12)
    engine.run(toy_request("a", [1] * 30, max_tokens=2), toy_request("b", [2] * 5, arrival=1, max_tokens=1))
    assert [lengths(step) for step in engine.steps] == [{"a": 12, "b": 5}, {"a": 12}, {"a": 6}, {"a": 1}]


def test_threshold_below_the_block_goes_on_inside_the_block():
    engine = toy_engine(block_size=16, budget=100, threshold=12)
    engine.run(toy_request("a", [1] * 40, max_tokens=1))
    assert engine.requests["a"].chunks == [(0, 12), (12, 4), (16, 12), (28, 4), (32, 8)]


@pytest.mark.parametrize("pattern", ["A", "MA"])
def test_without_chunked_prefill_a_prompt_is_whole_or_waits(pattern):
    engine = toy_engine(pattern=pattern, mode="none", caching=False, chunked=False, budget=20, threshold=3)
    engine.run(*(toy_request(name, [1] * 12, arrival=i, max_tokens=3) for i, name in enumerate("abc")))
    assert [lengths(step) for step in engine.steps] == [
        {"a": 12},
        {"a": 1, "b": 12},
        {"a": 1, "b": 1, "c": 12},
        {"b": 1, "c": 1},
        {"c": 1},
    ]


def test_a_replay_longer_than_any_step_is_cut_even_without_chunked_prefill():
    """20 tokens fit a step, the 26 to replay do not; waiting for them to fit would be for ever."""
    engine = toy_engine(pattern="A", block_size=4, caching=False, chunked=False, budget=20)
    engine.add(toy_request("a", [1] * 20, max_tokens=12))
    for _ in range(7):
        engine.step()
    engine.scheduler._preempt(engine.scheduler._running.pop())
    engine.run()
    assert engine.requests["a"].chunks[7:9] == [(0, 20), (20, 7)]


def test_a_replay_once_cut_goes_on_beside_others():
    """39 tokens to replay: [0, 19), then 20 are left, a whole step's budget, of which "a" takes one."""
    engine = toy_engine(pattern="A", block_size=4, caching=False, chunked=False, budget=20)
    engine.add(toy_request("a", [1] * 2, max_tokens=60), toy_request("b", [2] * 18, arrival=1, max_tokens=40))
    for _ in range(21):
        engine.step()
    engine.scheduler._preempt(engine.scheduler._running.pop())
    engine.run()
    assert engine.requests["b"].chunks[21:24] == [(0, 19), (19, 19), (38, 1)]


def test_a_running_request_may_sit_a_step_out(monkeypatch):
    engine = toy_engine(pattern="A", caching=False)
    engine.add(*(toy_request(name, [1] * 8, arrival=i, max_tokens=4) for i, name in enumerate("abc")))
    engine.step()
    chunking = engine.scheduler._chunking

    class SitsOut:
        max_tokens = chunking.max_tokens

        def length(self, request, start, budget, junction):
            return 0 if request.request_id == "b" else chunking.length(request, start, budget, junction)

    monkeypatch.setattr(engine.scheduler, "_chunking", SitsOut())
    engine.step()
    assert lengths(engine.steps[-1]) == {"a": 1, "c": 1}


@pytest.mark.parametrize("budget", [1, 2, 7, 15, 16, 17, 31, 33])
@pytest.mark.parametrize("block", [16, 64])
def test_no_budget_starves_a_prompt(budget, block):
    engine = toy_engine(block_size=block, budget=budget)
    outputs = engine.run(*(toy_request(f"{i}", [i] * 70, arrival=i, max_tokens=3) for i in range(4)))
    assert all(len(tokens) == 3 for tokens in outputs.values())


@pytest.mark.parametrize("offset", [-1, 0, 1])
@pytest.mark.parametrize("multiple", [1, 2, 3])
@pytest.mark.parametrize(("block", "budget"), [(8, 8), (8, 24), (8, 20), (16, 12)])
def test_lengths_around_blocks_and_chunks_compute_the_same(block, budget, multiple, offset):
    tokens = [(3 * index) % 50 for index in range(100)]
    for unit in (block, budget):
        length = unit * multiple + offset
        plain = toy_engine(mode="none", caching=False, budget=500).run(toy_request("r", tokens[:length], max_tokens=20))
        for caching, mode in ((False, "none"), (True, "align")):
            engine = toy_engine(block_size=block, budget=budget, caching=caching, mode=mode)
            assert engine.run(toy_request("r", tokens[:length], max_tokens=20)) == plain
            assert engine.run(toy_request("s", tokens[:length], arrival=1, max_tokens=20))["s"] == plain["r"]


def test_ended_are_returned_in_batch_order_and_told_to_the_worker_once():
    engine = toy_engine(pattern="A")
    engine.add(*(toy_request(name, [1] * 4, arrival=i, max_tokens=1 + (name == "b")) for i, name in enumerate("abc")))
    assert [request.request_id for request in engine.step()] == ["a", "c"]
    assert [request.request_id for request in engine.step()] == ["b"]
    assert [step.finished for step in engine.steps] == [(), ("a", "c")]
    assert not engine.scheduler.has_unfinished()
    assert engine.scheduler.schedule().finished == ("b",)


def test_eos_ends_unless_ignored():
    tokens = toy_engine().run(toy_request("r", [4, 5, 6], max_tokens=12))["r"]
    eos = tokens[3]
    cut = tokens.index(eos) + 1
    engine = toy_engine(eos=[eos])
    engine.run(toy_request("r", [4, 5, 6], max_tokens=12))
    assert engine.requests["r"].output_token_ids == tokens[:cut]
    assert engine.requests["r"].status is RequestStatus.FINISHED_STOPPED
    assert toy_engine(eos=[eos]).run(toy_request("r", [4, 5, 6], max_tokens=12, ignore_eos=True))["r"] == tokens


def test_forced_tokens_are_what_is_computed():
    engine = toy_engine(block_size=4)
    forced = (9, 8, 7, 6, 5, 4)
    engine.run(toy_request("r", [1, 2, 3], forced_token_ids=forced))
    assert tuple(engine.requests["r"].output_token_ids) == forced


@pytest.mark.parametrize("when", ["waiting", "running", "preempted"])
def test_abort_gives_everything_back(when):
    engine = toy_engine(block_size=8)
    engine.add(toy_request("keep", [1] * 20, max_tokens=6), toy_request("r", [2] * 20, arrival=1, max_tokens=20))
    if when != "waiting":
        engine.step()
    if when == "preempted":
        engine.scheduler._preempt(engine.scheduler._running.pop())
    assert engine.scheduler.abort("r")
    assert not engine.scheduler.abort("r")
    engine.scheduler.check_integrity()
    assert engine.requests["r"].status is RequestStatus.FINISHED_ABORTED
    engine.run()
    assert engine.scheduler.cache.pool.num_free == engine.scheduler.cache.pool.num_usable
    assert len(engine.requests["keep"].output_token_ids) == 6
    assert "r" in {name for step in engine.steps for name in step.finished}


@pytest.mark.parametrize("answer", [{"r": 1}, {}], ids=["answered", "failed"])
def test_abort_while_the_step_is_computed_keeps_the_blocks_until_it_is_done(answer):
    scheduler = toy_scheduler()
    request = toy_request("r", [1] * 10, max_tokens=6)
    scheduler.add(request)
    output = scheduler.schedule()
    held = scheduler.cache.pool.num_free
    assert scheduler.abort("r")
    assert scheduler.cache.pool.num_free == held
    assert scheduler.update(output, StepOutput(answer, {}, {})) == []
    assert scheduler.cache.pool.num_free == scheduler.cache.pool.num_usable
    assert request.output_token_ids == []
    assert not scheduler.has_unfinished()
    assert not scheduler.abort("nobody")


def test_schedule_and_update_alternate():
    scheduler = toy_scheduler()
    scheduler.add(toy_request("r", [1] * 10))
    output = scheduler.schedule()
    with pytest.raises(RuntimeError, match="step 0 is still in flight"):
        scheduler.schedule()
    with pytest.raises(RuntimeError, match=r"no token for \['r'\]"):
        scheduler.update(output, StepOutput({}, {}, {}))
    assert scheduler.update(output, StepOutput({"r": 1}, {}, {})) == [], "a refused update has changed nothing"
    with pytest.raises(RuntimeError, match="step 0 is not in flight"):
        scheduler.update(output, StepOutput({"r": 1}, {}, {}))


def test_nothing_to_do_is_an_empty_step():
    engine = toy_engine()
    assert engine.step() == []
    assert engine.steps[0].chunks == ()


def test_new_attention_blocks_are_zeroed_only_where_states_share_the_pool():
    for pattern, mode, zeroed in (("A", "none", 0), ("MA", "none", 3), ("MA", "align", 3), ("M", "none", 0)):
        engine = toy_engine(pattern=pattern, mode=mode, caching=False, block_size=8)
        engine.run(toy_request("r", [1] * 20, max_tokens=3))
        assert sum(len(step.zero_blocks) for step in engine.steps) == zeroed


def test_block_tables_are_shared_not_copied():
    engine = toy_engine(pattern="A", caching=False)
    engine.add(toy_request("r", [1] * 20, max_tokens=6))
    engine.step()
    engine.step()
    first, second = (step.chunks[0].block_ids[0] for step in engine.steps)
    assert first is second


def test_short_prompts_under_every_budget_keep_no_state_off_its_boundary():
    """All prompts up to two blocks and one token, alone and sharing the budget: the referee reads what is kept."""
    block = 5
    for length in range(1, 2 * block + 2):
        for budget in range(1, 2 * block + 4):
            engine = toy_engine(block_size=block, budget=budget)
            prompt = [(3 * index) % 50 for index in range(length)]
            engine.run(
                toy_request("a", [9] * 3, max_tokens=2),
                toy_request("b", prompt, arrival=1, max_tokens=2),
                toy_request("c", prompt[::-1], arrival=2, max_tokens=2),
            )
            engine.run(toy_request("again", prompt, arrival=3, max_tokens=2))
            assert engine.requests["again"].num_cached_tokens == (length - 1) // block * block
            assert engine.requests["again"].output_token_ids == engine.requests["b"].output_token_ids
