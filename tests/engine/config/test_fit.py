"""`max_model_len=-1`: the longest request that fits the pool, foreseen by the front end and settled by the worker."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ready_answers import answer, resolved, settled
from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.cache.manager import CacheManager
from staticfire.engine.config import ConfigError, Device, accept, model_info, resolve
from staticfire.engine.config.rules.examples import MODELS, example_model
from staticfire.engine.errors import EngineError, RequestError
from staticfire.engine.ready.settle import settle
from staticfire.engine.request import Request
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.admission import check_request
from staticfire.engine.scheduler.output import StepOutput
from staticfire.engine.scheduler.scheduler import Scheduler
from staticfire.engine.worker.settle import settle_worker

SOUND = sorted(name for name in MODELS if example_model(name).quant_method is None)
CONTEXT = 2048
H100 = Device("h100", "cuda", 80 * 2**30, (9, 0))


def fits(model, blocks, length, **typed):
    """Whether a pool of that many blocks holds a request of that length, by the rule and not by the fit."""
    found = resolve({"num_gpu_blocks_override": blocks, "max_model_len": length, **typed}, model)
    assert {violation.code for violation in found.violations} <= {"SF105"}
    return found.accepted


@given(name=st.sampled_from(SOUND), blocks=st.integers(2, 200), caching=st.booleans())
def test_it_is_the_longest_that_fits(name, blocks, caching):
    model = example_model(name)
    typed = {"num_gpu_blocks_override": blocks, "enable_prefix_caching": caching, "max_model_len": -1}
    found = resolve(typed, model)
    if not found.accepted:
        assert [violation.code for violation in found.violations] == ["SF105"]
        assert not fits(model, blocks, 1, enable_prefix_caching=caching)
        return
    assert found.runtime is not None
    length = found.runtime.max_model_len
    assert fits(model, blocks, length, enable_prefix_caching=caching)
    assert length == CONTEXT or not fits(model, blocks, length + 1, enable_prefix_caching=caching)


@pytest.mark.parametrize(
    ("blocks", "length"),
    [
        (10, 240),  # 10 - 1 - 3 groups x 2 states = 3 blocks of 80 tokens
        (8, 80),
        (31, 1920),
        (33, 2048),  # 26 blocks would hold 2080 tokens, but the context ends before
    ],
)
def test_the_arithmetic_by_hand(blocks, length):
    assert settled("jamba-grow", max_model_len=-1, num_gpu_blocks_override=blocks).runtime.max_model_len == length


@pytest.mark.parametrize("context", [1, 79, 80, 81, 1003])
@pytest.mark.parametrize("name", ["jamba-grow", "llama", "mamba"])
def test_with_room_it_is_the_context_whatever_the_blocks(name, context):
    model = model_info({**MODELS[name], "max_position_embeddings": context}, name)
    found = resolve({"max_model_len": -1}, model)
    assert found.runtime is not None
    assert found.runtime.max_model_len == context


def test_every_holder_has_the_fitted_length_and_the_resolved_one_stays():
    config = resolved("jamba-grow", max_model_len=-1, num_gpu_blocks_override=10, enable_prefix_caching=False)
    assert (config.model.max_model_len, config.scheduler.max_model_len) == (CONTEXT, CONTEXT)
    engine = settle_worker(config)
    # 10 - 1 - 3 groups x 1 state = 6 blocks of 80 tokens
    assert {engine.model.max_model_len, engine.scheduler.max_model_len, engine.runtime.max_model_len} == {480}
    assert engine.runtime.mamba_block_size == 480, "without caching a state spans the whole request"
    assert engine.runtime.kv_cache_max_concurrency == 1.0
    assert engine.runtime.kv_cache_size_tokens == 480


def test_where_it_comes_from_is_told():
    values = resolve({"max_model_len": -1}, example_model("jamba")).values
    assert values["model.max_model_len"].source == "derived"
    assert "-1 asks for the longest that fits" in (values["model.max_model_len"].because or "")
    assert values["model.fit_max_model_len"].value is True
    assert resolve({}, example_model("jamba")).values["model.fit_max_model_len"].value is False


def test_a_device_with_room_leaves_the_whole_context():
    found = resolve({"max_model_len": -1}, example_model("jamba"), H100)
    assert found.runtime is not None
    assert found.runtime.max_model_len == CONTEXT
    assert f"longest request that fits: {CONTEXT} of {CONTEXT} tokens" in found.arithmetic


def test_where_nothing_fits_it_is_refused_by_the_rule_and_by_the_worker():
    model = example_model("jamba-grow")
    with pytest.raises(ConfigError, match=r"max_model_len=-1 fits nothing: one request of 1 token needs 7 blocks"):
        accept({"max_model_len": -1, "num_gpu_blocks_override": 7}, model)
    lines = resolve({"max_model_len": -1, "num_gpu_blocks_override": 7}, model).arithmetic
    assert "longest request that fits: none" in lines
    config = resolved("jamba-grow", max_model_len=-1, num_gpu_blocks_override=8)
    smaller = replace(config, cache=replace(config.cache, num_gpu_blocks_override=7))
    with pytest.raises(EngineError, match="the pool of 7 blocks does not hold one request of 1 token"):
        settle_worker(smaller)


@pytest.mark.parametrize(("length", "valid"), [(0, False), (-2, False), (-1, True), (1, True)])
def test_what_may_be_typed(length, valid):
    if valid:
        assert resolve({"max_model_len": length}, example_model("llama")).accepted
        return
    with pytest.raises(ConfigError, match=rf"max_model_len={length} should be greater than 0, or -1 for the longest"):
        resolve({"max_model_len": length}, example_model("llama"))


def test_the_front_end_admits_by_the_fitted_length():
    """An engine fitted 262144 tokens to 15168, its front end went on admitting more, and such prompts hung it."""
    typed: dict[str, Any] = {"max_model_len": -1, "num_gpu_blocks_override": 10}
    front_end = settle(resolved("jamba-grow", **typed), [answer(0, "jamba-grow", **typed)]).config
    cache = CacheManager(front_end, plan_cache(front_end))
    check_request(Request("short", [1] * 239, SamplingParams(max_tokens=1), 0), front_end, cache)
    with pytest.raises(RequestError, match=r"the prompt has 240 tokens; max_model_len=240 leaves room for at most 239"):
        check_request(Request("long", [1] * 240, SamplingParams(max_tokens=1), 0), front_end, cache)


@given(name=st.sampled_from(["jamba", "jamba-grow", "llama", "bamba"]), blocks=st.integers(9, 40))
def test_a_request_of_the_fitted_length_comes_to_its_end(name, blocks):
    config = settled(name, max_model_len=-1, num_gpu_blocks_override=blocks, max_num_seqs=2)
    length = config.runtime.max_model_len
    scheduler = Scheduler(config, plan_cache(config))
    prompt = max(1, length - 3)
    scheduler.add(Request("r", [1] * prompt, SamplingParams(max_tokens=length - prompt, ignore_eos=True), 0))
    for _ in range(100):
        if not scheduler.has_unfinished():
            return
        output = scheduler.schedule()
        scheduler.update(output, StepOutput({chunk.request_id: 7 for chunk in output.chunks if chunk.samples}, {}, {}))
        scheduler.check_integrity()
    pytest.fail("the scheduler makes no progress")
