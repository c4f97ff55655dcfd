import cmath

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.rotary import make_metadata, rotary_embedding
from staticfire.kernels.testing import assert_close, bits_equal

pytestmark = pytest.mark.engine


def table(max_pos, head_size, dtype, theta=10000.0):
    frequencies = theta ** (-torch.arange(0, head_size, 2, dtype=torch.float64) / head_size)
    angles = torch.arange(max_pos, dtype=torch.float64)[:, None] * frequencies
    return torch.cat((angles.cos(), angles.sin()), -1).to(dtype)


@cases.examples
@given(
    cases.makers(),
    st.lists(st.integers(0, 49), max_size=6),
    st.sampled_from([(1, 1), (4, 2), (2, 2)]),
    st.sampled_from([2, 8, 16]),
    st.booleans(),
)
def test_quick_path_agrees_with_reference(make, positions, heads, size, shared):
    q, k = make(len(positions), heads[0], size), make(len(positions), heads[1], size)
    cos_sin = table(50, size, torch.float64 if make.dtype is torch.float64 else torch.float32)
    positions = torch.tensor(positions, dtype=torch.int64)
    metadata = make_metadata(positions, cos_sin, make.dtype) if shared else None
    quick = rotary_embedding(q, k, positions, cos_sin, metadata=metadata)
    slow = rotary_embedding(q, k, positions, cos_sin, metadata=metadata, backend="reference")
    for actual, expected in zip(quick, slow, strict=True):
        assert_close("rotary_embedding", actual, expected)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_is_a_rotation_of_complex_numbers(backend):
    size, positions = 8, torch.tensor([0, 1, 7, 400])
    make = cases.Maker(8, torch.float64)
    q, k = make(4, 2, size), make(4, 1, size)
    q_out, k_out = rotary_embedding(q, k, positions, table(512, size, torch.float64), backend=backend)
    for before, after in ((q, q_out), (k, k_out)):
        for t, position in enumerate(positions.tolist()):
            for head in range(before.shape[1]):
                row, got = before[t, head].tolist(), after[t, head].tolist()
                for i in range(size // 2):
                    turned = complex(row[i], row[i + 4]) * cmath.exp(1j * position * 10000.0 ** (-2 * i / size))
                    assert complex(got[i], got[i + 4]) == pytest.approx(turned, abs=1e-12)


@pytest.mark.parametrize("backend", ["torch", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_with_transformers(backend, dtype):
    from transformers.models.jamba.modeling_jamba import apply_rotary_pos_emb

    make = cases.Maker(9, dtype)
    q, k, positions = make(5, 4, 16), make(5, 2, 16), torch.tensor([3, 0, 9, 9, 30])
    cos_sin = table(32, 16, dtype)
    cos, sin = (half.repeat(1, 2)[positions][None] for half in cos_sin.chunk(2, -1))
    theirs = apply_rotary_pos_emb(q.transpose(0, 1)[None], k.transpose(0, 1)[None], cos, sin)
    ours = rotary_embedding(q, k, positions, cos_sin, backend=backend)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close("rotary_embedding", actual, expected[0].transpose(0, 1))


def test_position_zero_changes_nothing_and_inputs_stay():
    make = cases.Maker(9, torch.float32)
    q, k = make(2, 4, 16), make(2, 2, 16)
    before = q.clone()
    q_out, k_out = rotary_embedding(q, k, torch.tensor([0, 0]), table(2, 16, torch.float32))
    assert torch.equal(q_out, q)
    assert torch.equal(k_out, k)
    rotary_embedding(q, k, torch.tensor([1, 1]), table(2, 16, torch.float32))
    assert bits_equal(q, before)
