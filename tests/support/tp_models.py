"""Models of several ranks for tests: made from a `config.json` alone, and driven by a scheduler of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from staticfire.engine.cache.layout import plan_cache
from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.request import Request
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import SchedulerOutput, StepOutput, TokenLogprobs
from staticfire.engine.scheduler.scheduler import Scheduler


class Computes(Protocol):
    """A runner or an executor."""

    def execute(self, output: SchedulerOutput) -> StepOutput: ...


JAMBA: dict[str, Any] = {
    "model_type": "jamba",
    "architectures": ["JambaForCausalLM"],
    "vocab_size": 37,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 4,
    "attn_layer_period": 2,
    "attn_layer_offset": 1,
    "expert_layer_period": 2,
    "expert_layer_offset": 0,
    "num_experts": 3,
    "num_experts_per_tok": 2,
    "mamba_d_state": 4,
    "mamba_d_conv": 3,
    "mamba_expand": 2,
    "max_position_embeddings": 256,
}
"""Small enough that a process of it starts as fast as torch is imported."""


def resolved(hf: dict[str, Any], ranks: int, name: str = "drawn", **typed: Any) -> ResolvedConfig:
    """Accept a configuration; weights are drawn unless another `load_format` is typed."""
    keywords = {
        "load_format": "dummy",
        "dtype": "float64",
        "max_model_len": 64,
        "max_num_seqs": 4,
        "max_num_batched_tokens": 16,
        "enable_prefix_caching": False,
        "tensor_parallel_size": ranks,
    }
    return accept(keywords | typed, model_info(hf, name))


@dataclass
class Outcome:
    """What came out, and that what was meant to happen on the way did."""

    tokens: dict[str, list[int]] = field(default_factory=dict)
    logprobs: dict[str, list[TokenLogprobs]] = field(default_factory=dict)
    prompt_logprobs: dict[str, list[TokenLogprobs]] = field(default_factory=dict)
    preemptions: int = 0
    cached_tokens: int = 0
    longest_chunk: int = 0
    steps: int = 0


def generate(
    config: EngineConfig,
    worker: Computes,
    prompts: Sequence[Sequence[int]],
    params: SamplingParams,
    rounds: int = 1,
) -> Outcome:
    """Serve the prompts all at once, `rounds` times on one cache."""
    scheduler = Scheduler(config, plan_cache(config), ())
    outcome = Outcome()
    for turn in range(rounds):
        requests = [
            Request(f"{turn}.{number}", list(prompt), params, turn * len(prompts) + number)
            for number, prompt in enumerate(prompts)
        ]
        for request in requests:
            scheduler.add(request)
        while scheduler.has_unfinished():
            output = scheduler.schedule()
            answer = worker.execute(output)
            for name, entry in answer.logprobs.items():
                outcome.logprobs.setdefault(name, []).append(entry)
            for name, entries in answer.prompt_logprobs.items():
                outcome.prompt_logprobs.setdefault(name, []).extend(entries)
            outcome.steps += 1
            scheduler.update(output, answer)
        scheduler.check_integrity()
        for request in requests:
            outcome.tokens[request.request_id] = request.output_token_ids
            outcome.preemptions += request.num_preemptions
            outcome.cached_tokens += max(request.num_cached_tokens, 0)
            outcome.longest_chunk = max(outcome.longest_chunk, *(length for _, length in request.chunks))
    return outcome


def assert_same(found: Outcome, wanted: Outcome, within: float = 1e-9) -> None:
    """Equal tokens, and log-probabilities of all reported tokens within a distance."""
    assert found.tokens == wanted.tokens
    for mine, other in ((found.logprobs, wanted.logprobs), (found.prompt_logprobs, wanted.prompt_logprobs)):
        assert mine.keys() == other.keys()
        for name, entries in mine.items():
            assert len(entries) == len(other[name])
            for a, b in zip(entries, other[name], strict=True):
                assert a.token_id == b.token_id
                assert a.argmax == b.argmax
                assert abs(a.logprob - b.logprob) <= within
                assert [token for token, _ in a.top] == [token for token, _ in b.top]
                assert all(abs(x - y) <= within for (_, x), (_, y) in zip(a.top, b.top, strict=True))
