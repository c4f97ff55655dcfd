"""Every family against transformers, for the same checkpoint: values teacher-forced, tokens where they are clear.

The oracle is one forward pass over the whole sequence without any cache, so that none of the engine's ways of cutting
a sequence (prefill chunks, decode steps, batches) has a counterpart that could share its fault.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from staticfire.engine.errors import EngineError
from staticfire.engine.llm import LLM
from staticfire.engine.observer import Observer
from staticfire.engine.sampling_params import SamplingParams

pytestmark = pytest.mark.engine

BOUND = 1e-4
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "jamba": ("jamba", {}),
    "jamba, grouped heads, larger state": (
        "jamba",
        {"mamba_d_state": 16, "num_attention_heads": 8, "num_key_value_heads": 2},
    ),
    "jamba without convolution bias, with projection bias": (
        "jamba",
        {"mamba_conv_bias": False, "mamba_proj_bias": True, "mamba_dt_rank": 6, "mamba_d_conv": 3},
    ),
    "jamba with one expert: dense": ("jamba", {"num_experts": 1}),
    "jamba, every expert chosen, tied": ("jamba", {"num_experts_per_tok": 4, "tie_word_embeddings": True}),
    "llama": ("llama", {}),
    "llama with attention bias, tied": ("llama", {"attention_bias": True, "tie_word_embeddings": True}),
    "llama with another rotary base": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    "qwen3": ("qwen3", {}),
}


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(3, 512, (n,), generator=generator).tolist() for n in (1, 3, 17, 64, 130)]


def oracle(folder: Path, sequences: list[list[int]], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Log-probabilities [length, vocabulary] of every sequence, each in one pass."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
    with torch.inference_mode():
        return [
            model(torch.tensor([tokens]), use_cache=False).logits[0].float().log_softmax(-1) for tokens in sequences
        ]


@pytest.fixture(scope="module", params=CASES)
def folder(request: pytest.FixtureRequest, make_checkpoint: Callable[..., Path]) -> Path:
    family, overrides = CASES[request.param]
    return make_checkpoint(family, **overrides)


@pytest.mark.parametrize("tokens", [1024, 48])
def test_prefill_and_decode_agree_with_one_pass(folder: Path, tokens: int):
    params = SamplingParams(max_tokens=20, ignore_eos=True, logprobs=5, prompt_logprobs=5)
    with LLM(folder, dtype="float32", max_num_batched_tokens=tokens) as llm:
        outputs = llm.generate(prompts(), params)
    sequences = [output.prompt_token_ids + output.outputs[0].token_ids for output in outputs]
    for output, sequence, wanted in zip(outputs, sequences, oracle(folder, sequences), strict=True):
        entries = [*(output.prompt_logprobs or [])[1:], *(output.outputs[0].logprobs or [])]
        assert len(entries) == len(sequence) - 1
        for position, entry in enumerate(entries):
            assert entry is not None
            row = wanted[position]
            assert entry.token_id == sequence[position + 1]
            assert abs(entry.logprob - row[entry.token_id].item()) <= BOUND
            best, second = row.topk(2).values.tolist()
            if best - second > 10 * BOUND:
                assert entry.argmax == int(row.argmax())
            for token, logprob in entry.top:
                assert abs(logprob - row[token].item()) <= BOUND
            assert [logprob for _, logprob in entry.top] == sorted((x for _, x in entry.top), reverse=True)


def test_teacher_forcing_goes_through_decode_steps(folder: Path):
    """Past any divergence: the tokens are given, the model's own choice is still reported."""
    forced = tuple(torch.randint(3, 512, (25,), generator=torch.Generator().manual_seed(5)).tolist())
    params = SamplingParams(forced_token_ids=forced, logprobs=0, max_tokens=1)
    with LLM(folder, dtype="float32") as llm:
        outputs = llm.generate(prompts(), params)
    wanted = oracle(folder, [[*prompt, *forced] for prompt in prompts()])
    for output, prompt, rows in zip(outputs, prompts(), wanted, strict=True):
        completion = output.outputs[0]
        assert completion.token_ids == list(forced)
        assert completion.finish_reason == "length"
        assert [length for _, length in output.stats.chunks[1:]][-24:] == [1] * 24
        for step, entry in enumerate(completion.logprobs or []):
            row = rows[len(prompt) + step - 1]
            assert abs(entry.logprob - row[forced[step]].item()) <= BOUND
            best, second = row.topk(2).values.tolist()
            if best - second > 10 * BOUND:
                assert entry.argmax == int(row.argmax())


def test_greedy_tokens_are_those_of_generate(folder: Path):
    """Against transformers' own loop with its cache, as a user would compare."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    model.generation_config.eos_token_id = None
    prompt = prompts()[3]
    with torch.inference_mode():
        tokens = torch.tensor([prompt])
        theirs = model.generate(
            tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=16, do_sample=False, pad_token_id=0
        )
    with LLM(folder, dtype="float32") as llm:
        ours = llm.generate([prompt], SamplingParams(max_tokens=16, ignore_eos=True))
    assert ours[0].outputs[0].token_ids == theirs[0, len(prompt) :].tolist()


@pytest.mark.parametrize("family", ["jamba", "llama"])
def test_bfloat16_is_as_close_to_the_truth_as_transformers_is(make_checkpoint: Callable[..., Path], family: str):
    folder = make_checkpoint(family)
    with LLM(folder, dtype="bfloat16") as llm:
        outputs = llm.generate(prompts()[1:], SamplingParams(max_tokens=1, prompt_logprobs=0))
    truth, theirs = (oracle(folder, prompts()[1:], dtype) for dtype in (torch.float32, torch.bfloat16))
    ours_off, theirs_off = [], []
    for output, prompt, exact, rounded in zip(outputs, prompts()[1:], truth, theirs, strict=True):
        for position, entry in enumerate((output.prompt_logprobs or [])[1:]):
            assert entry is not None
            token = prompt[position + 1]
            ours_off.append(abs(entry.logprob - exact[position, token].item()))
            theirs_off.append(abs(rounded[position, token] - exact[position, token]).item())
    assert 1e-3 < sum(ours_off) < 1.5 * sum(theirs_off)


class Routes(Observer):
    """Collects routing decisions by layer."""

    def __init__(self) -> None:
        self.seen: dict[int, list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]] = {}

    def routing(
        self, layer: int, topk_ids: torch.Tensor, topk_weights: torch.Tensor, router_logits: torch.Tensor
    ) -> None:
        self.seen.setdefault(layer, []).append((topk_ids, topk_weights, router_logits))


def test_routing_is_observed_and_equal(jamba: Path):
    import transformers

    routes, prompt = Routes(), prompts()[3]
    with LLM(jamba, dtype="float32", observer=routes, enable_prefix_caching=False, max_num_batched_tokens=1024) as llm:
        llm.generate([prompt], SamplingParams(max_tokens=1))
    model = transformers.AutoModelForCausalLM.from_pretrained(jamba, dtype=torch.float32).eval()
    with torch.inference_mode():
        logits = model(torch.tensor([prompt]), use_cache=False, output_router_logits=True).router_logits
    assert sorted(routes.seen) == [0, 3]
    for layer, wanted in zip((0, 3), logits, strict=True):
        ids, weights, seen = routes.seen[layer][0]
        assert ids.shape == weights.shape == (len(prompt), 2)
        torch.testing.assert_close(seen, wanted, rtol=0, atol=1e-4)
        chances = wanted.softmax(-1)
        torch.testing.assert_close(weights, chances.gather(1, ids), rtol=0, atol=1e-4)
        margins = wanted.sort(-1, descending=True).values
        clear = margins[:, 1] - margins[:, 2] > 1e-3
        assert clear.sum() > len(prompt) // 2
        assert torch.equal(ids[clear].sort(-1).values, wanted.topk(2, -1).indices[clear].sort(-1).values)


@pytest.mark.parametrize(
    ("family", "overrides", "wanted"),
    [
        ("jamba", {"hidden_act": "gelu"}, "hidden_act='gelu'"),
        ("llama", {"hidden_act": "relu"}, "hidden_act='relu'"),
        ("llama", {"mlp_bias": True}, "mlp_bias=True"),
        ("llama", {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 2.0}}, "rope_type='linear'"),
    ],
)
def test_what_would_change_the_mathematics_is_refused(
    make_checkpoint: Callable[..., Path], family: str, overrides: dict[str, Any], wanted: str
):
    with pytest.raises(EngineError, match=wanted):
        LLM(make_checkpoint(family, **overrides), dtype="float32")
