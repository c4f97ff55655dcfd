"""The law of a draw, against transformers' own filters and against arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.oracle.drawing import Law, drawn, filtered, number, possible

LOGITS = st.lists(st.integers(-40, 40), min_size=2, max_size=12, unique=True).map(lambda xs: np.array(xs) / 4)


def law(temperature=1.0, top_k=0, top_p=1.0, at=0.5):
    return Law(temperature, top_k, top_p, at)


@pytest.mark.engine
@given(LOGITS, st.floats(0.2, 5), st.integers(0, 6), st.floats(0.05, 1))
def test_what_is_left_is_what_transformers_leaves(logits, temperature, top_k, top_p):
    import torch

    from staticfire.harness.oracle.isolation import import_transformers

    process = import_transformers().generation.logits_process
    scores = torch.from_numpy(logits)[None]
    scores = process.TemperatureLogitsWarper(temperature)(None, scores)
    if top_k:
        scores = process.TopKLogitsWarper(top_k)(None, scores)
    if top_p < 1:
        scores = process.TopPLogitsWarper(top_p)(None, scores)
    expected = torch.softmax(scores, -1)[0].numpy()
    found = filtered(logits, law(temperature, top_k, top_p))
    if (expected > 0).sum() != (found > 0).sum():  # at exactly the mass, rounding decides
        reached = np.cumsum(np.sort(filtered(logits, law(temperature, top_k)))[::-1])
        assert np.abs(reached - top_p).min() < 1e-9
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_filters_by_hand():
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    assert filtered(logits, law()) == pytest.approx([0.5, 0.3, 0.15, 0.05])
    assert filtered(logits, law(top_k=2)) == pytest.approx([0.625, 0.375, 0, 0])
    assert filtered(logits, law(top_p=0.6)) == pytest.approx([0.625, 0.375, 0, 0])
    assert filtered(logits, law(top_p=0.4)) == pytest.approx([1, 0, 0, 0])
    assert filtered(logits, law(top_k=3, top_p=0.83)) == pytest.approx([0.625, 0.375, 0, 0])  # of what top-k left
    assert filtered(np.zeros(4), law(top_k=1)) == pytest.approx([1, 0, 0, 0])  # of equals the first


def test_a_draw_is_the_inverse_of_the_cumulative_distribution_in_the_order_of_ids():
    logits = np.log([0.2, 0.5, 0.3])
    assert [drawn(logits, law(at=at)) for at in (0.0, 0.19, 0.21, 0.69, 0.71, 1 - 2**-53)] == [0, 0, 1, 1, 2, 2]


def test_numbers_depend_on_seed_and_position_alone_and_are_uniform():
    numbers = [number(seed, position) for seed in range(40) for position in range(50)]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= one < 1 for one in numbers)
    assert abs(np.mean(numbers) - 0.5) < 4 / math.sqrt(12 * len(numbers))
    assert number(7, 3) == number(7, 3) == Law.of(SamplingParams(temperature=1.0, seed=7), 3).number


@given(LOGITS, st.floats(0.5, 5), st.integers(0, 6), st.floats(0.05, 1), st.floats(0, 0.999), st.randoms())
def test_logits_within_what_is_allowed_draw_a_possible_token(logits, temperature, top_k, top_p, at, chance):
    off = 1e-3
    moved = logits + np.array([chance.uniform(-off, off) for _ in logits])
    one = law(temperature, top_k, top_p, at)
    assert drawn(logits, one) in possible(logits, one, off)
    assert drawn(moved, one) in possible(logits, one, off)


def test_neighbours_in_rank_that_rounding_may_swap_are_both_possible():
    logits = np.array([3.0, 2.0, 2.0 - 1e-5, 0.0])
    assert possible(logits, law(top_k=2, at=0.99), 1e-4) == {1, 2}
    assert possible(logits, law(top_k=2, at=0.99), 1e-6) == {1}


def test_far_from_every_boundary_one_token_is_possible():
    assert possible(np.log([0.2, 0.5, 0.3]), law(at=0.5), 1e-4) == {1}
    assert possible(np.log([0.2, 0.5, 0.3]), law(at=0.2), 1e-4) == {0, 1}
    assert possible(np.log([0.5, 0.3, 0.2]), law(top_p=0.8, at=0.999), 1e-4) == {1, 2}
