"""Two ranks in processes of their own against one: in float64, equal tokens and log-probabilities within 1e-9."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from staticfire.engine.errors import EngineError, RequestError
from staticfire.engine.llm import LLM
from staticfire.engine.observer import Observer
from staticfire.engine.outputs import RequestOutput
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.models.make import ensure

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(240)]

GREEDY = SamplingParams(max_tokens=10, ignore_eos=True, logprobs=3)
SHARED = 90
POOLS = {"jamba-tiny": 20, "jamba-tiny-grow": 13, "llama-tiny": 20}
"""Blocks that are too few for all prompts at once."""


def prompts(vocabulary: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(5)

    def draw(n: int) -> list[int]:
        return torch.randint(3, vocabulary, (n,), generator=generator).tolist()

    common = draw(SHARED)
    return [common + draw(n) for n in (1, 30, 90)] + [draw(n) for n in (1, 2, 16, 17, 63, 64, 65, 130)]


def assert_equal(found: list[RequestOutput], wanted: list[RequestOutput]) -> None:
    for a, b in zip(found, wanted, strict=True):
        mine, other = a.outputs[0], b.outputs[0]
        assert mine.token_ids == other.token_ids
        assert mine.logprobs is not None
        assert other.logprobs is not None
        for x, y in zip(mine.logprobs, other.logprobs, strict=True):
            assert x.token_id == y.token_id
            assert abs(x.logprob - y.logprob) <= 1e-9
            assert [token for token, _ in x.top] == [token for token, _ in y.top]


class Model:
    """A checkpoint, its prompts, and what one rank makes of each alone and whole."""

    def __init__(self, name: str, quantization: str | None = None) -> None:
        self.folder = folder = ensure(name)
        self.pool = POOLS[name]
        self.common: dict[str, Any] = {"dtype": "float64", "max_model_len": 256, "quantization": quantization}
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.prompts = prompts(config["vocab_size"])
        with LLM(folder, max_num_seqs=1, max_num_batched_tokens=256, enable_prefix_caching=False, **self.common) as llm:
            self.wanted = llm.generate(self.prompts, GREEDY)

    def on_two(self, **config: Any) -> LLM:
        return LLM(self.folder, tensor_parallel_size=2, **self.common, **config)


@pytest.fixture(scope="module", params=["jamba-tiny", "jamba-tiny-grow", "llama-tiny", "jamba-tiny in int8"])
def model(request: pytest.FixtureRequest) -> Model:
    name, _, quantized = request.param.partition(" in ")
    return Model(name, "experts_int8" if quantized else None)


def test_chunks_and_prefix_hits(model: Model):
    with model.on_two(enable_prefix_caching=True, max_num_batched_tokens=100) as llm:
        cold = llm.generate(model.prompts, GREEDY)
        warm = llm.generate(model.prompts, GREEDY)
        hybrid = llm.config.model.info.is_hybrid
    assert_equal(cold, model.wanted)
    assert_equal(warm, model.wanted)
    assert max(length for output in cold for _, length in output.stats.chunks) <= 100
    assert any(len(output.stats.chunks) > len(output.outputs[0].token_ids) for output in cold)
    hits = [output.stats for output in warm if output.stats.num_cached_tokens > 0]
    assert len(hits) >= 3
    assert all(stats.restored_states == int(hybrid) for stats in hits)


def test_preemption(model: Model):
    with model.on_two(
        enable_prefix_caching=False, max_num_batched_tokens=256, num_gpu_blocks_override=model.pool
    ) as llm:
        outputs = llm.generate(model.prompts, GREEDY)
    assert sum(output.stats.num_preemptions for output in outputs) > 0
    assert_equal(outputs, model.wanted)


def test_more_ranks_than_key_value_heads(make_checkpoint: Callable[..., Path]):
    """Both ranks keep a copy of the one head; draws, prompt logprobs and forced tokens go the same way."""
    folder = make_checkpoint("llama", num_key_value_heads=1, vocab_size=511)
    params = [
        SamplingParams(max_tokens=8, ignore_eos=True, logprobs=3, prompt_logprobs=2),
        SamplingParams(max_tokens=8, ignore_eos=True, logprobs=3, temperature=1.0, seed=2**70),
        SamplingParams(ignore_eos=True, logprobs=3, forced_token_ids=(5, 7, 11)),
    ]
    asked = prompts(511)[2:5]
    found = []
    for ranks in (1, 2):
        with LLM(folder, dtype="float64", tensor_parallel_size=ranks, max_num_batched_tokens=64) as llm:
            found.append(llm.generate(asked, params))
            runtime = llm.config.runtime
            assert runtime.attention_bytes_per_token == 2 * llm.config.model.info.head_dim * 8
            assert len([view for view in llm.client.views() if view.role == "worker"]) == ranks
    one, two = found
    assert_equal(two, one)
    mine, other = two[0].prompt_logprobs, one[0].prompt_logprobs
    assert mine is not None
    assert other is not None
    assert len(mine) == len(asked[0])
    for x, y in zip(mine[1:], other[1:], strict=True):
        assert x is not None
        assert y is not None
        assert abs(x.logprob - y.logprob) <= 1e-9


def test_every_worker_holds_what_the_front_end_holds():
    with LLM(ensure("jamba-tiny-grow"), load_format="dummy", tensor_parallel_size=2, block_size=16) as llm:
        views = llm.client.views()
        runtime = llm.config.runtime
        first = llm.generate([1, 2, 3], GREEDY)
        with pytest.raises(RequestError):
            llm.generate([10**9], GREEDY)
        assert llm.generate([1, 2, 3], GREEDY)[0].outputs[0].token_ids == first[0].outputs[0].token_ids
    workers = [view for view in views if view.role == "worker"]
    assert [view.holder for view in workers] == ["worker 0.0", "worker 0.1"]
    front = next(view for view in views if view.holder == "front end")
    assert front.fields["runtime.block_size"] == runtime.block_size > 16
    for view in workers:
        assert view.fields == front.fields


def test_an_observer_has_no_place_to_stand():
    with pytest.raises(EngineError, match="an observer watches one process"):
        LLM(ensure("llama-tiny"), tensor_parallel_size=2, observer=Observer())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_other_dtypes_run(dtype: str):
    with LLM(ensure("jamba-tiny"), dtype=dtype, tensor_parallel_size=2) as llm:
        outputs = llm.generate([[5, 6, 7, 8]], SamplingParams(max_tokens=4, ignore_eos=True, logprobs=0))
    with LLM(ensure("jamba-tiny"), dtype=dtype) as llm:
        wanted = llm.generate([[5, 6, 7, 8]], SamplingParams(max_tokens=4, ignore_eos=True, logprobs=0))
    mine, other = outputs[0].outputs[0].logprobs, wanted[0].outputs[0].logprobs
    assert mine is not None
    assert other is not None
    # One position: later ones depend on a token that rounding may decide.
    assert abs(mine[0].logprob - other[0].logprob) < {"float32": 1e-4, "bfloat16": 0.5, "float16": 0.1}[dtype]
