"""What a prompt finds in the cache when it, or its beginning, was there before."""

import pytest

from toy_engine.factories import toy_engine, toy_request

PROMPT = [(7 * index + index // 11) % 50 for index in range(200)]


def repeat(length, block=16, again=None, **config):
    """Run a prompt, then run it (or `again`) a second time; return the second request."""
    engine = toy_engine(block_size=block, **config)
    engine.run(toy_request("first", PROMPT[:length], max_tokens=1))
    engine.run(toy_request("second", PROMPT[: again or length], arrival=1, max_tokens=5))
    return engine.requests["second"]


@pytest.mark.parametrize(("length", "hit"), [(15, 0), (16, 0), (17, 16), (31, 16), (32, 16), (33, 32), (48, 32)])
def test_the_same_prompt_again(length, hit):
    second = repeat(length)
    assert second.num_cached_tokens == hit
    assert second.num_restored_states == (hit > 0)
    assert second.chunks[0][0] == hit


@pytest.mark.parametrize("block", [1, 2, 7, 16, 32])
@pytest.mark.parametrize("pattern", ["A", "MA", "M", "MMMA"])
@pytest.mark.parametrize("budget", [5, 16, 37, 300])
def test_the_hit_is_the_last_boundary_before_the_last_token(block, pattern, budget):
    for length in (1, block, 2 * block - 1, 2 * block, 2 * block + 1, 64, 65, 99):
        assert repeat(length, block, pattern=pattern, budget=budget).num_cached_tokens == (length - 1) // block * block


@pytest.mark.parametrize(
    ("length", "again", "hit"), [(32, 40, 32), (32, 49, 32), (33, 49, 32), (48, 33, 32), (64, 33, 0)]
)
def test_a_longer_or_shorter_prompt_finds_the_states_that_were_kept(length, again, hit):
    assert repeat(length, again=again).num_cached_tokens == hit


def test_output_is_found_too():
    engine = toy_engine(block_size=8)
    first = toy_request("first", PROMPT[:10], max_tokens=20)
    engine.run(first)
    turn = PROMPT[:10] + first.output_token_ids + [1, 2, 3]
    engine.run(toy_request("second", turn, arrival=1, max_tokens=2))
    # 29 tokens were computed: the 20th output token was never an input
    assert engine.requests["second"].num_cached_tokens == 24


def test_a_shared_beginning_leaves_a_state_at_its_end_for_the_third():
    """The first leaves no state at 48; the second finds attention to 48, stops there, and the third starts there."""
    engine = toy_engine(block_size=16)
    for index, name in enumerate(("first", "second", "third")):
        engine.run(toy_request(name, [*PROMPT[:50], *[index] * 50], arrival=index, max_tokens=2))
    first, second, third = (engine.requests[name] for name in ("first", "second", "third"))
    assert first.chunks[:2] == [(0, 96), (96, 4)]
    assert (second.num_cached_tokens, second.junction) == (0, 48)
    assert second.chunks[:3] == [(0, 48), (48, 48), (96, 4)]
    assert third.num_cached_tokens == 48


def test_requests_of_one_step_do_not_find_each_other():
    """What a step computes can be found from the next step on, not before it exists."""
    engine = toy_engine(block_size=8, budget=100)
    engine.run(*(toy_request(f"{i}", PROMPT[:20], arrival=i, max_tokens=3) for i in range(3)))
    assert [chunk.start for chunk in engine.steps[0].chunks] == [0, 0, 0]
    assert all(request.num_cached_tokens == 0 for request in engine.requests.values())
    outputs = [request.output_token_ids for request in engine.requests.values()]
    assert outputs[0] == outputs[1] == outputs[2]


def test_no_lookup_without_caching_or_with_states_that_are_not_kept():
    assert repeat(64, caching=False).num_cached_tokens == 0
    assert repeat(64, mode="none").num_cached_tokens == 0
    assert repeat(64, mode="none", pattern="A").num_cached_tokens == 48


def test_prompt_logprobs_are_computed_not_found():
    engine = toy_engine()
    engine.run(toy_request("first", PROMPT[:64], max_tokens=1))
    engine.run(toy_request("second", PROMPT[:64], arrival=1, max_tokens=1, prompt_logprobs=0))
    assert engine.requests["second"].num_cached_tokens == 0
    assert engine.requests["second"].chunks[0][0] == 0


def test_a_hit_is_evicted_last_block_first():
    """A pool that cannot keep all keeps the beginning: with attention only, the deepest block goes first."""
    engine = toy_engine(pattern="A", block_size=16, num_blocks=9)
    engine.run(toy_request("first", PROMPT[:97], max_tokens=1))  # six full blocks and one more, of eight
    engine.run(toy_request("other", [3] * 50, arrival=1, max_tokens=1))  # four blocks: two were free of content
    engine.run(toy_request("again", PROMPT[:97], arrival=2, max_tokens=1))
    assert engine.requests["again"].num_cached_tokens == 64
