"""A fault in a state, a page, a weight or a scale shows: each moves the checked values by 100 times the noise or more.

An oracle that cannot see such a fault would call anything `exact`. The faults are injected into a running engine, after
each prompt's prefill; the measure is the one that judges cells.
"""

import numpy as np
import pytest
import torch

from staticfire.engine.cache.spec import AttentionSpec
from staticfire.engine.layers.moe import SparseMoe
from staticfire.harness.models.make import ensure
from staticfire.harness.models.prompts import sized_prompts
from staticfire.harness.oracle.base import Noise
from staticfire.harness.oracle.compare import Expected, compare
from staticfire.harness.oracle.judge import question_of
from staticfire.harness.oracle.laws import against_oracle
from staticfire.harness.oracle.recorder import RoutingRecorder
from staticfire.harness.oracle.references import OracleReferences
from staticfire.harness.oracle.store import Store
from staticfire.harness.oracle.subject import Subject
from staticfire.harness.oracle.transformers import TransformersOracle

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LENGTHS = (9, 17, 24, 33, 40, 48, 57, 64, 71, 79, 90, 96, 103, 111, 128, 150)
TIMES = 100
MAX_TOKENS = 16
MODELS = ("jamba-tiny", "jamba-tiny-grow")


class Injector(RoutingRecorder):
    """Calls `fault(caches, chunks)` before the first decode step of each request, for those requests."""

    def __init__(self, fault=None):
        super().__init__()
        self.fault = fault
        self.injected = 0

    def before_forward(self, output, caches):
        super().before_forward(output, caches)
        first = [chunk for chunk in output.chunks if chunk.start == chunk.num_prompt_tokens]
        if self.fault is not None and first:
            self.fault(caches, first)
            self.injected += len(first)


def states(caches, kind):
    """Every recurrent layer's states of one kind (0 convolution, 1 scan)."""
    return [tensors[kind] for tensors in caches.states.values()]


def blocks(chunks):
    return torch.tensor([chunk.state_blocks[0] for chunk in chunks])


def zero(kind):
    def fault(caches, chunks):
        for state in states(caches, kind):
            state[blocks(chunks)] = 0

    return fault


def swap(kind):
    """Each request gets the state of the one before it."""

    def fault(caches, chunks):
        where = blocks(chunks)
        for state in states(caches, kind):
            state[where] = state[where.roll(1)]

    return fault


def shift(kind):
    """Every channel gets its neighbour's state."""

    def fault(caches, chunks):
        where = blocks(chunks)
        for state in states(caches, kind):
            state[where] = state[where].roll(1, dims=1)

    return fault


def drop_page(caches, chunks):
    """The first page of keys and values reads as zeros."""
    groups = [i for i, group in enumerate(caches.layout.groups) if isinstance(group.spec, AttentionSpec)]
    for chunk in chunks:
        for layer, pages in caches.attention.items():
            assert caches.group_of[layer] in groups
            pages[chunk.block_ids[caches.group_of[layer]][0]] = 0


CACHE_FAULTS = {
    "zeroed scan state": zero(1),
    "zeroed convolution state": zero(0),
    "swapped scan state": swap(1),
    "swapped convolution state": swap(0),
    "shifted scan state": shift(1),
    "shifted convolution state": shift(0),
    "dropped KV page": drop_page,
}


def experts(subject):
    """The expert weights of the last MoE layer."""
    feeds = [layer.feed_forward for layer in subject.llm.core.runner.model.layers]
    return next(feed.experts for feed in reversed(feeds) if isinstance(feed, SparseMoe))


def perturb_expert(subject):
    """The largest weight of one expert's down projection, by a tenth."""
    weight = experts(subject).w2[0]
    weight[divmod(int(weight.abs().argmax()), weight.shape[1])] *= 1.1


def perturb_scale(subject):
    """One output channel's scale of one expert, by a tenth."""
    scale = experts(subject).w2_scale
    scale[0, scale[0].argmax()] *= 1.1


@pytest.fixture(scope="module")
def measured(cache_dir):
    """A function (model, quantization, fault in the caches, fault in the weights) -> comparisons, noise, injections."""
    store = Store(cache_dir / "oracle")
    oracle = TransformersOracle()

    def measure(model, quantization=None, cache_fault=None, weight_fault=None):
        checkpoint = ensure(model, cache_dir)
        injector = Injector(cache_fault)
        typed = {"dtype": "float32", "enable_prefix_caching": False, "max_num_batched_tokens": 4096}
        if quantization is not None:
            typed["quantization"] = quantization
        with Subject(checkpoint, typed, injector) as subject:
            question = question_of(checkpoint, subject.config, MAX_TOKENS)
            assert subject.llm.tokenizer is not None
            prompts = [prompt.token_ids for prompt in sized_prompts(subject.llm.tokenizer, LENGTHS)]
            traces = OracleReferences(oracle, store, question).traces(prompts)
            if weight_fault is not None:
                weight_fault(subject)
            answers = subject.answers(prompts, [trace.tokens for trace in traces], MAX_TOKENS)
        noise = Noise.of([trace.noise for trace in traces])
        allowed = against_oracle(question, noise)
        found = [
            compare(Expected(trace.tokens, trace.tokens, trace.rows), answer.observed, allowed)
            for trace, answer in zip(traces, answers, strict=True)
        ]
        changed = [trace.tokens != answer.observed.tokens for trace, answer in zip(traces, answers, strict=True)]
        return found, noise, changed, injector.injected

    return measure


@pytest.mark.parametrize("quantization", [None, "experts_int8"])
@pytest.mark.parametrize("model", MODELS)
def test_without_a_fault_every_prompt_passes(measured, model, quantization):
    """The control: what follows is due to the faults."""
    found, noise, _, injected = measured(model, quantization)
    assert injected == 0
    assert {comparison.grade for comparison in found} <= {"exact", "within-noise"}
    assert max(comparison.max_delta for comparison in found) < 10 * noise.max


@pytest.mark.parametrize("fault", CACHE_FAULTS)
@pytest.mark.parametrize("model", MODELS)
def test_a_fault_in_a_cache_moves_every_prompt(measured, model, fault):
    found, noise, _, injected = measured(model, cache_fault=CACHE_FAULTS[fault])
    assert injected >= len(LENGTHS)
    moved = [comparison.max_delta for comparison in found]
    assert min(moved) >= TIMES * noise.max
    assert {comparison.grade for comparison in found} == {"wrong"}


@pytest.mark.parametrize("model", MODELS)
def test_zeroing_the_state_changes_the_tokens_of_at_least_half_of_the_prompts(measured, model):
    _, _, changed, _ = measured(model, cache_fault=zero(1))
    assert sum(changed) >= len(LENGTHS) / 2


@pytest.mark.parametrize(
    ("quantization", "fault"), [(None, perturb_expert), ("experts_int8", perturb_scale)], ids=["weight", "scale"]
)
@pytest.mark.parametrize("model", MODELS)
def test_one_expert_weight_or_one_scale_moves_the_prompts(measured, model, quantization, fault):
    found, noise, _, _ = measured(model, quantization, weight_fault=fault)
    moved = np.array([comparison.max_delta for comparison in found])
    assert moved.max() >= TIMES * noise.max
    assert any(comparison.grade == "wrong" for comparison in found)
