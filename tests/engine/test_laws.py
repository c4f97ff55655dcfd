"""The engine against itself: how the work is cut up must not show in what comes out.

Law 1 is stated in float64, where rounding is far below any real fault: equal tokens, log-probabilities within 1e-9.
Law 2 is bitwise: the same schedule gives the same bits. It holds where every matrix product has the same number of rows
on either side; with other row counts a processor's library may add in another order.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from staticfire.engine.llm import LLM
from staticfire.engine.observer import Observer
from staticfire.engine.outputs import RequestOutput
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput
from staticfire.engine.worker.cache import CacheBuffers

pytestmark = pytest.mark.engine

SHARED = 70
"""Tokens that the first prompts share: more than one block of 64, and no multiple of any block size."""


def make_prompts() -> list[list[int]]:
    """Lengths k * block and k * chunk, each -1, 0, +1, some with a common prefix."""
    generator = torch.Generator().manual_seed(3)

    def draw(n: int) -> list[int]:
        return torch.randint(3, 512, (n,), generator=generator).tolist()

    common = draw(SHARED)
    shared = [common + draw(n) for n in (1, 26, 30, 58, 130)]
    return shared + [draw(n) for n in (1, 2, 15, 16, 17, 31, 33, 47, 48, 49, 63, 64, 65, 96, 97, 160, 193)]


PROMPTS = make_prompts()
GREEDY = SamplingParams(max_tokens=12, ignore_eos=True, logprobs=3)


def run(
    folder: Path, prompts: Sequence[list[int]] = PROMPTS, params: Any = GREEDY, **config: Any
) -> list[RequestOutput]:
    config = {"dtype": "float64", "enable_prefix_caching": False, **config}
    with LLM(folder, **config) as llm:
        outputs = llm.generate(list(prompts), params)
        llm.core.scheduler.check_integrity()
    return outputs


def assert_equal(got: Sequence[RequestOutput], wanted: Sequence[RequestOutput], within: float) -> None:
    for a, b in zip(got, wanted, strict=True):
        where = f"prompt of {len(a.prompt_token_ids)} tokens"
        assert a.outputs[0].token_ids == b.outputs[0].token_ids, where
        left, right = a.outputs[0].logprobs, b.outputs[0].logprobs
        assert left is not None
        assert right is not None
        for x, y in zip(left, right, strict=True):
            assert abs(x.logprob - y.logprob) <= within, where
            assert [token for token, _ in x.top] == [token for token, _ in y.top], where


@pytest.fixture(scope="module", params=["jamba", "jamba_grow", "llama"])
def folder(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


@pytest.fixture(scope="module")
def canonical(folder: Path) -> list[RequestOutput]:
    """Every prompt alone, in one piece."""
    outputs = run(folder, max_num_seqs=1, max_num_batched_tokens=1024)
    for output in outputs:
        assert output.stats.chunks[0] == (0, len(output.prompt_token_ids))
    return outputs


VARIANTS: dict[str, dict[str, Any]] = {
    "batched": {"max_num_batched_tokens": 4096},
    "chunks of 64, batched": {"max_num_batched_tokens": 64},
    "chunks of 17 alone": {"max_num_seqs": 1, "max_num_batched_tokens": 1024, "long_prefill_token_threshold": 17},
    "five at a time": {"max_num_seqs": 5, "max_num_batched_tokens": 100},
    "blocks of 32": {"block_size": 32},
    "blocks of 64": {"block_size": 64, "max_num_batched_tokens": 128},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_schedules_and_blocks_do_not_show(folder: Path, canonical: list[RequestOutput], name: str):
    outputs = run(folder, **VARIANTS[name])
    assert_equal(outputs, canonical, 1e-9)
    if "chunks" in name:
        assert max(length for output in outputs for _, length in output.stats.chunks) <= 64
        assert any(len(output.stats.chunks) > len(output.outputs[0].token_ids) for output in outputs)


@pytest.mark.slow
@pytest.mark.parametrize("block_size", [16, 32, 64])
@pytest.mark.parametrize("tokens", [100, 4096])
def test_prefix_hits_do_not_show(folder: Path, canonical: list[RequestOutput], block_size: int, tokens: int):
    config: dict[str, Any] = {"dtype": "float64", "enable_prefix_caching": True, "block_size": block_size}
    with LLM(folder, **config, max_num_batched_tokens=tokens) as llm:
        cold = llm.generate(PROMPTS, GREEDY)
        warm = llm.generate(PROMPTS, GREEDY)
        size = llm.config.runtime.block_size
        recurrent = llm.config.model.info.is_hybrid
        llm.core.scheduler.check_integrity()
    assert_equal(cold, canonical, 1e-9)
    assert_equal(warm, canonical, 1e-9)
    long = [output for output in warm if len(output.prompt_token_ids) > size]
    assert len(long) >= 3
    for output in long:
        assert output.stats.num_cached_tokens > 0
        assert output.stats.chunks[0][0] == output.stats.num_cached_tokens
        assert output.stats.restored_states == int(recurrent)


@pytest.mark.slow
@pytest.mark.parametrize("caching", [False, True])
def test_preemption_does_not_show(folder: Path, canonical: list[RequestOutput], caching: bool):
    outputs = run(
        folder, enable_prefix_caching=caching, max_model_len=256, max_num_batched_tokens=256, num_gpu_blocks_override=22
    )
    assert sum(output.stats.num_preemptions for output in outputs) > 0
    assert_equal(outputs, canonical, 1e-9)


def test_the_same_run_gives_the_same_bits(folder: Path):
    config: dict[str, Any] = {"dtype": "float32", "max_num_batched_tokens": 96}
    assert_equal(run(folder, **config), run(folder, **config), 0)


class Spoil(Observer):
    """Changes what a prefix hit finds, by a factor that only the law under test can tell from rounding."""

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.spoilt = 0

    def before_forward(self, output: SchedulerOutput, caches: CacheBuffers) -> None:
        for chunk in output.chunks:
            if chunk.hit_tokens:
                self.spoilt += 1
                for group, layers in caches.attention_groups.items():
                    for layer in layers:
                        caches.attention[layer][chunk.block_ids[group][0]] *= self.factor


def hit_and_cold(
    folder: Path, dtype: str, observer: Observer | None = None, **cold: Any
) -> tuple[list[RequestOutput], list[RequestOutput]]:
    """The same prompt out of the prefix cache and without one.

    Both are cut where the hit ends, those that fill the cache too: then every matrix product has the same number of
    rows on either side. Products of other row counts add up in another order on some processors.
    """
    prompt = PROMPTS[4]
    params = SamplingParams(max_tokens=8, ignore_eos=True, logprobs=3)
    config: dict[str, Any] = {"dtype": dtype, "max_num_batched_tokens": 1024}
    with LLM(folder, **config, enable_prefix_caching=True) as llm:
        hit = (len(prompt) - 1) // llm.config.runtime.block_size * llm.config.runtime.block_size
    # A threshold can only cut evenly, so take the hit's length, of which at most one more chunk is left.
    assert 0 < len(prompt) - hit <= hit
    chunks = [(0, hit), (hit, len(prompt) - hit)]
    config["long_prefill_token_threshold"] = hit
    with LLM(folder, **config, enable_prefix_caching=True, observer=observer) as llm:
        filling = llm.generate([prompt], params)
        warm = llm.generate([prompt], params)
    without = run(folder, [prompt], params, **{**config, **cold})
    assert filling[0].stats.chunks[:2] == chunks
    assert warm[0].stats.chunks[0] == chunks[1]
    assert warm[0].stats.num_cached_tokens == hit
    if not cold:
        assert without[0].stats.chunks[:2] == chunks
    return warm, without


def test_a_hit_is_bitwise_a_cold_run_of_equal_row_counts(folder: Path):
    """Any difference is a fault, the smallest included."""
    assert_equal(*hit_and_cold(folder, "float32"), 0)


def test_a_hit_is_a_cold_run_of_other_row_counts_in_float64(folder: Path):
    """Where the prompt is computed in one piece, the order of sums may differ, by some 1e-14."""
    warm, cold = hit_and_cold(folder, "float64", long_prefill_token_threshold=0)
    assert cold[0].stats.chunks[0] == (0, len(PROMPTS[4]))
    assert_equal(warm, cold, 1e-12)


@pytest.mark.parametrize(("dtype", "factor", "within"), [("float32", 1 + 2**-20, 0), ("float64", 1 + 1e-9, 1e-12)])
def test_both_laws_of_hits_see_what_rounding_cannot_do(folder: Path, dtype: str, factor: float, within: float):
    spoil = Spoil(factor)
    warm, cold = hit_and_cold(folder, dtype, spoil)
    assert spoil.spoilt == 1
    with pytest.raises(AssertionError, match="prompt of 200 tokens"):
        assert_equal(warm, cold, within)


def test_prompt_logprobs_do_not_depend_on_chunks(folder: Path):
    params = SamplingParams(max_tokens=1, prompt_logprobs=2)
    whole = run(folder, PROMPTS[:6], params, max_num_batched_tokens=1024, max_num_seqs=1)
    cut = run(folder, PROMPTS[:6], params, max_num_batched_tokens=64, enable_prefix_caching=True)
    for a, b in zip(whole, cut, strict=True):
        assert a.prompt_logprobs is not None
        assert b.prompt_logprobs is not None
        assert len(a.prompt_logprobs) == len(b.prompt_logprobs) == len(a.prompt_token_ids)
        assert a.prompt_logprobs[0] is b.prompt_logprobs[0] is None
        for token, x, y in zip(a.prompt_token_ids[1:], a.prompt_logprobs[1:], b.prompt_logprobs[1:], strict=True):
            assert x is not None
            assert y is not None
            assert x.token_id == y.token_id == token
            assert abs(x.logprob - y.logprob) <= 1e-9
            assert x.argmax == y.argmax


class Poison(Observer):
    """Fills the whole pool with bytes that read as NaN before the first step."""

    done = False

    def before_forward(self, output: SchedulerOutput, caches: CacheBuffers) -> None:
        if not self.done:
            self.done = True
            keep = sorted({block for chunk in output.chunks for block in (*chunk.state_blocks, *output.zero_blocks)})
            kept = caches.pool[:, keep].clone()
            caches.pool.fill_(0xFF)
            caches.pool[:, keep] = kept


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_no_stale_byte_is_ever_read(folder: Path, dtype: str):
    """Freed pages hold what another group left there, whose bytes may read as NaN in this one."""
    config: dict[str, Any] = {"dtype": dtype, "max_num_batched_tokens": 100, "num_gpu_blocks_override": 300}
    assert_equal(run(folder, PROMPTS[:8], observer=Poison(), **config), run(folder, PROMPTS[:8], **config), 0)


class Bystanders(Observer):
    """Compares, bit by bit, the pages that a step has no business with."""

    watched = 0

    def before_forward(self, output: SchedulerOutput, caches: CacheBuffers) -> None:
        mine: set[int] = set()
        for chunk in output.chunks:
            mine.update(chunk.state_blocks)
            size = caches.attention[next(iter(caches.attention))].shape[2]
            for group in caches.attention_groups:
                mine.update(chunk.block_ids[group][chunk.start // size :])
        self.others = [block for block in range(caches.layout.num_blocks) if block not in mine]
        self.caches, self.before = caches, caches.pool[:, self.others].clone()

    def step(self, output: SchedulerOutput, step_output: StepOutput) -> None:
        assert torch.equal(self.caches.pool[:, self.others], self.before)
        self.watched += len(self.others)


def test_a_step_writes_only_where_its_tokens_belong(folder: Path):
    """Neither the null block nor any earlier, cached or foreign page changes by a bit."""
    watch = Bystanders()
    config: dict[str, Any] = {"max_num_batched_tokens": 100, "num_gpu_blocks_override": 120}
    run(folder, PROMPTS[:8], enable_prefix_caching=True, observer=watch, **config)
    assert watch.watched > 1000


@pytest.mark.parametrize("option", ["mamba_cache_dtype", "mamba_ssm_cache_dtype"])
def test_a_hit_on_a_narrower_state_stays_within_its_rounding(jamba: Path, option: str):
    """A bfloat16 state has 8 bits: a restored one moves logprobs by hundredths, a lost one by units."""
    config: dict[str, Any] = {"dtype": "float32", "enable_prefix_caching": True, option: "bfloat16"}
    with LLM(jamba, **config) as llm:
        cold = llm.generate(PROMPTS[:5], GREEDY)
        warm = llm.generate(PROMPTS[:5], GREEDY)
    assert sum(output.stats.restored_states for output in warm) == 5
    for a, b in zip(cold, warm, strict=True):
        assert a.outputs[0].logprobs is not None
        assert b.outputs[0].logprobs is not None
        assert abs(a.outputs[0].logprobs[0].logprob - b.outputs[0].logprobs[0].logprob) < 0.2


def test_seeded_sampling_depends_on_seed_and_position_alone(folder: Path):
    params = [SamplingParams(temperature=1.0, top_k=40, top_p=0.9, seed=n, max_tokens=40, ignore_eos=True, logprobs=0)
              for n in range(8)]  # fmt: skip
    prompts = PROMPTS[7:15]
    alone = run(folder, prompts, params, max_num_seqs=1, max_num_batched_tokens=1024)
    batched = run(folder, prompts, params, max_num_batched_tokens=64, enable_prefix_caching=True)
    preempted = run(folder, prompts, params, max_model_len=128, max_num_batched_tokens=256, num_gpu_blocks_override=13)
    assert sum(output.stats.num_preemptions for output in preempted) > 0
    assert_equal(batched, alone, 1e-9)
    assert_equal(preempted, alone, 1e-9)
    greedy = run(folder, prompts, SamplingParams(max_tokens=40, ignore_eos=True))
    assert any(a.outputs[0].token_ids != b.outputs[0].token_ids for a, b in zip(alone, greedy, strict=True))
