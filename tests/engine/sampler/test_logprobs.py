import math
from typing import Any

import pytest
import torch

from staticfire.engine.errors import EngineError
from staticfire.engine.sampler.logprobs import token_logprobs
from staticfire.engine.sampler.prompt_logprobs import PromptLogprobs
from staticfire.engine.sampler.sampler import best_tokens, next_tokens
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import ScheduledChunk

pytestmark = pytest.mark.engine


def chunk(start: int, tokens: list[int], prompt: int, **params: Any) -> ScheduledChunk:
    return ScheduledChunk(
        request_id="r",
        token_ids=tokens,
        start=start,
        block_ids=([1],),
        state_blocks=(),
        samples=True,
        sampling_params=SamplingParams(**params),
        num_prompt_tokens=prompt,
    )


def test_hand_numbers():
    logits = torch.tensor([[0.0, math.log(3.0), 0.0], [math.log(2.0), 0.0, 0.0]], dtype=torch.float64)
    first, second = token_logprobs(logits, [0, 0], [2, 0])
    assert first.token_id == 0
    assert first.argmax == 1
    assert first.logprob == pytest.approx(math.log(0.2), abs=1e-15)
    assert [token for token, _ in first.top] == [1, 0]
    assert first.top[0][1] == pytest.approx(math.log(0.6), abs=1e-15)
    assert second.logprob == pytest.approx(math.log(0.5), abs=1e-15)
    assert second.top == ()


def test_more_than_the_vocabulary_is_all_of_it():
    (entry,) = token_logprobs(torch.zeros(1, 3), [1], [10])
    assert len(entry.top) == 3
    assert token_logprobs(torch.zeros(0, 3), [], []) == []


def test_half_types_are_widened():
    logits = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.bfloat16)
    (entry,) = token_logprobs(logits, [2], [0])
    assert entry.logprob == pytest.approx(3 - math.log(math.e + math.e**2 + math.e**3), abs=1e-6)


def test_the_first_of_equals_is_best():
    assert best_tokens(torch.tensor([[1.0, 5.0, 5.0]]), [chunk(0, [1], 1)]) == [1]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("choose", [best_tokens, next_tokens])
def test_logits_that_are_not_finite_are_an_error(choose, bad: float):
    with pytest.raises(EngineError, match=r"not finite for request\(s\) r"):
        choose(torch.tensor([[1.0, bad, 5.0]]), [chunk(0, [1], 1)])


def test_forced_tokens_by_position():
    forced = [chunk(start, [9], 5, forced_token_ids=(7, 8), temperature=1.0, seed=1) for start in (4, 5)]
    assert next_tokens(torch.zeros(2, 20), forced) == [7, 8]


def test_prompt_logprobs_are_carried_over_a_chunk_edge():
    prompts = PromptLogprobs(lambda hidden: hidden)
    rows = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    tokens = [0, 3, 1, 5, 2]
    wanted = rows.log_softmax(-1)
    first = prompts.describe([chunk(0, tokens[:2], 5, prompt_logprobs=0)], rows[:2])["r"]
    second = prompts.describe([chunk(2, tokens[2:], 5, prompt_logprobs=0)], rows[2:])["r"]
    assert [entry.token_id for entry in (*first, *second)] == tokens[1:]
    for position, entry in enumerate((*first, *second)):
        assert entry.logprob == pytest.approx(wanted[position, tokens[position + 1]].item(), abs=1e-6)


def test_what_was_carried_is_forgotten_with_the_request():
    prompts = PromptLogprobs(lambda hidden: hidden)
    prompts.describe([chunk(0, [0, 3], 5, prompt_logprobs=0)], torch.zeros(2, 6))
    prompts.forget(["r"])
    again = prompts.describe([chunk(0, [0, 3], 5, prompt_logprobs=0)], torch.zeros(2, 6))["r"]
    assert [entry.token_id for entry in again] == [3]


def test_decode_tokens_are_no_prompt():
    prompts = PromptLogprobs(lambda hidden: hidden)
    assert prompts.describe([chunk(5, [1], 5, prompt_logprobs=0)], torch.zeros(1, 6)) == {}
