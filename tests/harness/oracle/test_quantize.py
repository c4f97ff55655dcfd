"""The independent quantizer against hand numbers, a scalar loop, and its error bound."""

import ast
import inspect

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.oracle import quantize
from staticfire.harness.oracle.quantize import dequantized_int8

pytestmark = pytest.mark.engine


def loop(rows):
    """The definition, one scalar at a time, in float32."""
    out = np.zeros(rows.shape, np.float32)
    for r, row in enumerate(rows.astype(np.float32)):
        largest = max((abs(x) for x in row), default=np.float32(0))
        scale = np.float32(largest / np.float32(127)) if largest > 0 else np.float32(1)
        for k, x in enumerate(row):
            q = int(np.rint(np.float32(x / scale)))  # rint: half to even
            out[r, k] = np.float32(max(-127, min(127, q))) * scale
    return out


def test_by_hand():
    weight = torch.tensor([[127.0, -63.0, 0.4, 0.6], [2.54, 1.27, -2.54, 0.0], [0.0, 0.0, 0.0, 0.0]])
    made = dequantized_int8(weight)
    assert made[0].tolist() == [127.0, -63.0, 0.0, 1.0]
    assert made[1].tolist() == pytest.approx([2.54, 64 * 0.02, -2.54, 0.0], rel=1e-6)  # 63.5 steps: to the even 64
    assert made[2].tolist() == [0.0] * 4


def test_halves_go_to_the_even_neighbour():
    weight = torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]])
    assert dequantized_int8(weight)[0, 1:].tolist() == [0.0, 2.0, 2.0, -0.0, -2.0, -2.0]


def test_every_output_row_of_every_expert_has_its_own_scale():
    base = torch.tensor([[1.0, -0.5], [100.0, 3.0]])
    stacked = torch.stack([base, base * 1000])
    made = dequantized_int8(stacked)
    assert torch.allclose(made[1], made[0] * 1000, rtol=1e-6)
    alone = torch.stack([dequantized_int8(row[None])[0] for row in base])
    assert torch.equal(made[0], alone)


floats = st.floats(-100, 100, width=32, allow_subnormal=False)


@given(npst.arrays(np.float32, npst.array_shapes(min_dims=2, max_dims=2, max_side=7), elements=floats))
def test_equals_the_scalar_loop_and_stays_within_half_a_step(rows):
    made = dequantized_int8(torch.from_numpy(rows)).numpy()
    np.testing.assert_array_equal(made, loop(rows))
    step = np.abs(rows).max(-1, keepdims=True) / 127
    assert (np.abs(made - rows) <= step * 0.5001 + 1e-30).all()


@given(npst.arrays(np.float32, (3, 5), elements=floats))
def test_quantizing_twice_changes_nothing_more_than_rounding(rows):
    once = dequantized_int8(torch.from_numpy(rows))
    torch.testing.assert_close(dequantized_int8(once), once, rtol=3e-7, atol=0)


def test_it_computes_in_float32_whatever_it_is_given():
    weight = torch.randn(4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert dequantized_int8(weight).dtype == torch.float32
    assert torch.equal(dequantized_int8(weight), dequantized_int8(weight.float()))


def test_it_shares_no_code_with_what_it_judges():
    imports = [
        node.module if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(inspect.getsource(quantize)))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    ]
    assert imports
    assert not [name for name in imports if "staticfire" in str(name)]
