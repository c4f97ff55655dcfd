"""Sampling: the distribution drawn from, and what a draw depends on."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from staticfire.engine.sampler.draw import draw, keep_mask, uniform
from staticfire.engine.sampling_params import SamplingParams

pytestmark = pytest.mark.engine

logits = st.lists(st.floats(-30, 30), min_size=1, max_size=20).map(np.array)


def chances(values: np.ndarray, temperature: float) -> list[float]:
    """Softmax in plain Python."""
    weights = [math.exp((value - max(values)) / temperature) for value in values]
    return [weight / math.fsum(weights) for weight in weights]


@given(logits, st.integers(0, 25), st.floats(0.01, 1.0))
def test_what_is_kept(values: np.ndarray, top_k: int, top_p: float):
    """By the definition, token by token: better ones first, the lower id first among equals."""
    order = sorted(range(len(values)), key=lambda token: (-values[token], token))
    order = order[:top_k] if top_k else order
    mass = [math.exp(values[token] - values[order[0]]) for token in order]
    kept: set[int] = set()
    before = 0.0
    for token, weight in zip(order, mass, strict=True):
        if before < top_p - 1e-12 or not kept:
            kept.add(token)
        elif before < top_p + 1e-12:
            return  # on the edge: rounding may decide either way
        before += weight / math.fsum(mass)
    assert set(np.flatnonzero(keep_mask(values, top_k, top_p)).tolist()) == kept


@given(logits, st.integers(0, 2**64 - 1), st.integers(0, 10**6), st.floats(0.05, 5))
def test_a_draw_inverts_the_cumulative_distribution(values: np.ndarray, seed: int, position: int, temperature: float):
    params = SamplingParams(temperature=temperature, seed=seed)
    token, u = draw(values, params, position), uniform(seed, position)
    cumulative = np.cumsum(chances(values, temperature))
    assert (cumulative[token - 1] if token else 0.0) <= u + 1e-9
    assert u <= cumulative[token] + 1e-9


@example(np.array([-2.4211111e-232, 0.0, 0.5]), 0, 0, 3, 0.5)  # the first two are equal once the largest is off
@given(logits, st.integers(0, 9), st.integers(0, 99), st.integers(1, 5), st.floats(0.1, 1.0))
def test_only_kept_tokens_are_drawn(values: np.ndarray, seed: int, position: int, top_k: int, top_p: float):
    params = SamplingParams(temperature=1.0, seed=seed, top_k=top_k, top_p=top_p)
    assert keep_mask(values, top_k, top_p)[draw(values, params, position)]


def test_frequencies_follow_the_distribution():
    values = np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    counts = np.zeros(4)
    for position in range(20_000):
        counts[draw(values, SamplingParams(temperature=1.0, seed=1), position)] += 1
    # Six standard deviations of a binomial: 6 * sqrt(0.25 / 20000).
    np.testing.assert_allclose(counts / 20_000, [0.5, 0.3, 0.15, 0.05], atol=0.0213)


def test_uniform_depends_on_both_and_on_nothing_else():
    first = uniform(7, 3)
    uniform(8, 9)
    assert uniform(7, 3) == first
    assert len({uniform(seed, position) for seed in range(30) for position in range(30)}) == 900
    assert 0 <= min(uniform(0, position) for position in range(1000)) < 0.01
    assert 0.99 < max(uniform(0, position) for position in range(1000)) < 1


def test_a_low_temperature_is_greedy():
    values = np.array([0.1, 3.0, 2.9])
    assert {draw(values, SamplingParams(temperature=1e-4, seed=0), position) for position in range(50)} == {1}


@pytest.mark.parametrize("temperature", [5e-324, 1e-300, 1e308])
@pytest.mark.filterwarnings("error")
def test_a_temperature_at_the_edge_of_float(temperature: float):
    """5e-324 is the smallest number there is: nothing may overflow into a token that nobody would draw."""
    values = np.array([0.1, 30.0, 2.9, -30.0])
    for top_k, top_p in ((0, 1.0), (3, 0.999)):
        params = SamplingParams(temperature=temperature, seed=0, top_k=top_k, top_p=top_p)
        drawn = {draw(values, params, position) for position in range(50)}
        assert drawn == {1} if temperature < 1 else {0, 1, 2} <= drawn
