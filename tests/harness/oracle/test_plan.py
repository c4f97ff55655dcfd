from dataclasses import replace
from itertools import pairwise

import pytest

from settled_config import settled_config
from staticfire.engine.errors import EngineError
from staticfire.engine.tokenizer import load_tokenizer
from staticfire.harness.matrix.workload import Workload
from staticfire.harness.oracle.plan import LONGEST_CHUNK, TEXTS, chunk_size, plan

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def tokenizer(jamba):
    return load_tokenizer(jamba)


def lengths(prompts, family):
    return [len(prompt.tokens) for prompt in prompts if prompt.family == family]


def test_block_lengths_stand_at_the_boundaries_of_the_aligned_block(tokenizer):
    assert lengths(plan(tokenizer, settled_config(block_size=16)), "block") == [15, 16, 17, 47, 48, 49]
    grown = plan(tokenizer, settled_config("jamba-tiny-grow", block_size=16))
    assert lengths(grown, "block") == [79, 80, 81, 239, 240, 241]


def test_chunk_lengths_stand_at_the_boundaries_of_a_short_chunk(tokenizer):
    short = settled_config(max_num_batched_tokens=64)
    assert lengths(plan(tokenizer, short), "chunk") == [63, 64, 65, 127, 128, 129]
    threshold = settled_config(max_num_batched_tokens=256, long_prefill_token_threshold=40)
    assert lengths(plan(tokenizer, threshold), "chunk") == [39, 40, 41, 79, 80, 81]
    long = settled_config(max_num_batched_tokens=LONGEST_CHUNK + 1)
    assert lengths(plan(tokenizer, long), "chunk") == []


def test_prompts_of_the_block_family_share_their_beginning_with_each_other_only(tokenizer):
    prompts = plan(tokenizer, settled_config(max_num_batched_tokens=64))
    block = sorted((p.tokens for p in prompts if p.family == "block"), key=len)
    assert all(long[: len(short)] == short for short, long in pairwise(block))
    assert not any(p.tokens[:15] == block[0] for p in prompts if p.family != "block")


def test_two_texts_share_a_beginning_of_several_blocks(tokenizer):
    one, other = (p.tokens for p in plan(tokenizer, settled_config()) if p.name in TEXTS[-2:])
    shared = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    assert shared >= 3 * 32


def test_what_does_not_fit_is_left_out_and_names_are_unique(tokenizer):
    whole = plan(tokenizer, settled_config(max_num_batched_tokens=64))
    assert len({prompt.name for prompt in whole}) == len(whole)
    tight = settled_config(max_num_batched_tokens=64, max_model_len=64 + Workload().max_tokens)
    assert max(len(prompt.tokens) for prompt in plan(tokenizer, tight)) == 64


@pytest.mark.parametrize(
    ("chunked", "budget", "threshold", "size"), [(True, 100, 0, 100), (True, 100, 30, 30), (False, 100, 30, None)]
)
def test_the_size_of_a_chunk(chunked, budget, threshold, size):
    settled = settled_config()
    scheduler = replace(
        settled.scheduler,
        enable_chunked_prefill=chunked,
        max_num_batched_tokens=budget,
        long_prefill_token_threshold=threshold,
    )
    assert chunk_size(replace(settled, scheduler=scheduler)) == size


def test_a_small_workload_has_two_prompts_around_the_first_run_time_block(tokenizer):
    small = Workload("around-a-block", 8)
    assert lengths(plan(tokenizer, settled_config(block_size=16), small), "block") == [15, 17]
    grown = plan(tokenizer, settled_config("jamba-tiny-grow", block_size=16), small)
    assert [len(prompt.tokens) for prompt in grown] == [79, 81]
    assert grown[1].tokens[:79] == grown[0].tokens
    assert [
        len(prompt.tokens) for prompt in plan(tokenizer, settled_config(block_size=16, max_model_len=24), small)
    ] == [15]


def test_without_a_tokenizer_there_are_no_prompts():
    with pytest.raises(EngineError, match=r"tokenizer\.json"):
        plan(None, settled_config())
