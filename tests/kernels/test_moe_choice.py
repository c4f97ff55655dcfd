"""Which way through the experts is taken: against times that were measured, and what any model of cost must hold."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staticfire.kernels.fused_moe.choice import Shape, Way, choose, cost

pytestmark = pytest.mark.engine

MEASURED = {
    # (hidden, inner, experts, tokens): microseconds of dense, sorted; two experts a token, float32, one thread
    (64, 128, 4, 1): (15, 38),
    (64, 128, 4, 16): (56, 98),
    (256, 512, 8, 1): (174, 103),
    (256, 512, 8, 16): (1494, 793),
    (256, 512, 8, 64): (4427, 1639),
    (512, 1024, 8, 1): (1911, 263),
    (512, 1024, 8, 16): (7477, 4601),
    (512, 1024, 8, 64): (20136, 7755),
}


@pytest.mark.parametrize(("hidden", "inner", "experts", "tokens"), MEASURED)
def test_the_quicker_way_of_two_that_were_measured_is_chosen(hidden: int, inner: int, experts: int, tokens: int):
    dense, by_expert = MEASURED[hidden, inner, experts, tokens]
    chosen = choose(Shape(tokens, experts, 2, hidden, inner, torch.float32))
    assert chosen == ("dense" if dense < by_expert else "sorted")


def test_packed_experts_are_used_where_they_are_large():
    assert choose(Shape(16, 8, 2, 512, 1024, torch.float32), packed=True) == "packed"
    assert choose(Shape(1, 4, 2, 64, 128, torch.float32), packed=True) == "dense"


def test_float16_never_computes_what_was_not_chosen():
    assert choose(Shape(1, 4, 2, 64, 128, torch.float16)) == "sorted"


SHAPES = st.builds(
    Shape,
    tokens=st.integers(1, 300),
    experts=st.integers(2, 64),
    top_k=st.integers(1, 2),
    hidden=st.integers(8, 4096),
    inner=st.integers(8, 4096),
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16]),
    convert=st.booleans(),
    threads=st.integers(1, 16),
)
WAYS: list[Way] = ["dense", "sorted", "packed"]


@given(SHAPES, st.sampled_from(WAYS))
def test_more_work_costs_more(shape: Shape, way: Way):
    assert 0 < cost(way, shape) < cost(way, shape._replace(tokens=shape.tokens + 1))
    assert cost(way, shape) < cost(way, shape._replace(inner=shape.inner + 1))
    assert cost(way, shape._replace(threads=shape.threads + 1)) < cost(way, shape)


@given(SHAPES)
def test_the_choice_is_a_cheapest_one(shape: Shape):
    assert cost(choose(shape, packed=True), shape) == min(cost(way, shape) for way in WAYS)
