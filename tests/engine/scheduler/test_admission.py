import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.errors import RequestError
from toy_engine.factories import VOCAB, toy_engine, toy_request, toy_scheduler


@pytest.mark.parametrize(
    ("prompt", "params", "config", "message"),
    [
        ([], {}, {}, "the prompt is empty"),
        ([1] * 64, {}, {"max_len": 64}, "64 tokens; max_model_len=64 leaves room for at most 63 and one new"),
        ([1] * 90, {}, {"max_len": 64}, "the prompt has 90 tokens"),
        ([1, 2, VOCAB], {}, {}, rf"prompt: token {VOCAB} at index 2 is not in \[0, {VOCAB}\)"),
        ([1, -1], {}, {}, "prompt: token -1 at index 1"),
        ([1], {"forced_token_ids": (3, 99)}, {}, "forced_token_ids: token 99 at index 1"),
        ([1] * 60, {"forced_token_ids": (1,) * 5}, {"max_len": 64}, "60 prompt and 5 forced tokens are more"),
        ([1] * 30, {}, {"chunked": False, "mode": "none", "caching": False, "budget": 20}, "chunked prefill is off"),
        (
            [1] * 100,
            {"max_tokens": 40},
            {"num_blocks": 8, "block_size": 16},
            "needs 11 cache blocks to compute 139 tokens and the pool has 7: raise num_gpu_blocks_override to .*12",
        ),
    ],
)
def test_a_request_that_cannot_finish_is_refused_with_numbers(prompt, params, config, message):
    scheduler = toy_scheduler(**config)
    with pytest.raises(RequestError, match=message):
        scheduler.add(toy_request("r", prompt, **params))
    assert not scheduler.has_unfinished()


def test_all_reasons_are_given_at_once():
    with pytest.raises(RequestError, match=r"'r': prompt: token 99 .*; forced_token_ids: token 77 .*; the prompt has"):
        toy_scheduler(max_len=4).add(toy_request("r", [99] * 5, forced_token_ids=(77,)))


def test_an_id_is_unique_among_unfinished_requests():
    engine = toy_engine()
    engine.add(toy_request("r", [1], max_tokens=1))
    with pytest.raises(RequestError, match="the id is in use"):
        engine.add(toy_request("r", [2]))
    engine.run()
    engine.run(toy_request("r", [2], max_tokens=1))


@given(
    prompt=st.integers(1, 60),
    outputs=st.integers(1, 40),
    block=st.sampled_from([1, 4, 8, 16]),
    mode=st.sampled_from(["none", "align"]),
    pattern=st.sampled_from(["A", "MA", "MMMA"]),
)
def test_the_refusal_is_sharp(prompt, outputs, block, mode, pattern):
    """With exactly the blocks asked for a request runs to its end; with one less it is refused."""
    request = toy_request("r", [1] * prompt, max_tokens=outputs)
    caching = mode == "align"
    settings = {"pattern": pattern, "block_size": block, "mode": mode, "caching": caching, "budget": 20}
    needed = toy_scheduler(**settings).cache.max_blocks(prompt + outputs - 1)
    if needed > 1:
        with pytest.raises(RequestError, match=f"needs {needed} cache blocks"):
            toy_scheduler(**settings, num_blocks=needed).add(toy_request("r", [1] * prompt, max_tokens=outputs))
    engine = toy_engine(**settings, num_blocks=needed + 1)
    assert len(engine.run(request)["r"]) == outputs
