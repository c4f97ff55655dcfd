"""What configuration accepts, the scheduler finishes: the smallest pool that is accepted serves the longest request."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config import accept, resolve
from staticfire.engine.config.rules.examples import example_model
from staticfire.engine.request import Request
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import StepOutput
from staticfire.engine.scheduler.scheduler import Scheduler
from staticfire.engine.worker.settle import settle_worker

MOST_STEPS = 5000


def smallest_pool(typed, model):
    """Blocks of the smallest pool that is accepted, found by halving."""
    low, high = 1, 100_000
    while high - low > 1:
        middle = (low + high) // 2
        if resolve({**typed, "num_gpu_blocks_override": middle}, model).accepted:
            high = middle
        else:
            low = middle
    return high


def finish(config, prompts):
    """Run prompts to the end of the context, sampling token 7; the number of steps."""
    scheduler = Scheduler(config, plan_cache(config))
    length = config.model.max_model_len
    for index, prompt in enumerate(prompts):
        params = SamplingParams(max_tokens=length - prompt, ignore_eos=True)
        scheduler.add(Request(f"r{index}", [index + 1] * prompt, params, arrival=index))
    steps = 0
    while scheduler.has_unfinished():
        steps += 1
        assert steps < MOST_STEPS, "the scheduler makes no progress"
        output = scheduler.schedule()
        sampled = {chunk.request_id: 7 for chunk in output.chunks if chunk.samples}
        scheduler.update(output, StepOutput(sampled, {}, {}))
        scheduler.check_integrity()
    return steps


@settings(max_examples=40)
@given(
    name=st.sampled_from(["jamba", "jamba-grow", "llama", "bamba", "qwen3-next"]),
    caching=st.booleans(),
    chunked=st.booleans(),
    length=st.integers(20, 400),
    budget=st.integers(1, 200),
    threshold=st.sampled_from([0, 0, 7]),
    data=st.data(),
)
def test_the_smallest_accepted_pool_is_live(name, caching, chunked, length, budget, threshold, data):
    model = example_model(name)
    typed = {
        "max_model_len": length,
        "enable_prefix_caching": caching,
        "max_num_batched_tokens": budget,
        "max_num_seqs": data.draw(st.integers(1, min(budget, 3))),
        "long_prefill_token_threshold": threshold,
    }
    if not chunked:
        typed |= {
            "enable_chunked_prefill": False,
            "enable_prefix_caching": False,
            "max_num_batched_tokens": max(length, budget),
            "long_prefill_token_threshold": 0,
        }
    prompts = data.draw(st.lists(st.integers(1, length - 1), min_size=1, max_size=3))
    config = settle_worker(accept({**typed, "num_gpu_blocks_override": smallest_pool(typed, model)}, model))
    finish(config, prompts)


@pytest.mark.parametrize("budget", [1, 8, 79, 80, 81])
def test_a_budget_below_the_block_still_moves(budget):
    """A block larger than the token budget once hung other engines: no prefill chunk was ever a whole block."""
    grow = example_model("jamba-grow")
    typed = {"max_model_len": 400, "max_num_batched_tokens": budget, "max_num_seqs": 1}
    config = settle_worker(accept(typed, grow))
    assert config.runtime.block_size >= 80
    finish(config, [399])
