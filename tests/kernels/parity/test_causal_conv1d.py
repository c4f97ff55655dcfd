import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from memory_layouts import far, fenced
from staticfire.kernels.causal_conv1d import causal_conv1d_update, causal_conv1d_varlen
from staticfire.kernels.causal_conv1d import triton as ours
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.testing import assert_close, assert_untouched, bits_equal, embed

pytestmark = [pytest.mark.engine, pytest.mark.interp]

WIDTHS = st.integers(1, 5)
ACTIVATIONS = st.sampled_from(["silu", None])


@pytest.fixture(scope="module", autouse=True)
def small_tiles():
    """Let few tokens and channels make many programs."""
    patch = pytest.MonkeyPatch()
    for name in ("TOKENS", "CHANNELS", "STEP_CHANNELS"):
        patch.setattr(ours, name, 4)
    yield
    patch.undo()


@cases.examples
@given(cases.makers(), cases.layouts(), WIDTHS, st.booleans(), ACTIVATIONS, st.booleans(), cases.dtypes)
def test_varlen(make, layout, width, biased, activation, swap, state_dtype):
    channels = 6
    x, weight = make(layout.tokens, channels), make(channels, width)
    bias = make(2, channels).t()[:, 1] if biased else None
    start, before = make(layout.pool, channels, width - 1).to(state_dtype), x.clone()
    where = fenced(layout.cu_seqlens), fenced(layout.state_indices), layout.has_initial_state

    def run(backend):
        state = embed(start, swap=swap)
        out = causal_conv1d_varlen(
            x, weight, bias, where[0], state.view, where[1], where[2], activation, backend=backend
        )
        state.assert_canaries()
        assert_untouched(start, state.view, layout.written)
        return [out, state.view]

    out, state = assert_repeatable(lambda: run("triton"))
    expected, expected_state = run("reference")
    assert_close("causal_conv1d_varlen", out, expected)
    assert bits_equal(state, expected_state)
    assert bits_equal(x, before)


@cases.examples
@given(cases.makers(), cases.layouts(), WIDTHS, st.booleans(), ACTIVATIONS, st.booleans(), cases.dtypes)
def test_update(make, layout, width, biased, activation, swap, state_dtype):
    channels = 6
    x, weight = make(len(layout.slots), channels), make(channels, width)
    bias = make(2, channels).t()[:, 1] if biased else None
    start = make(layout.pool, channels, width - 1).to(state_dtype)
    indices = fenced(layout.state_indices)

    def run(backend):
        state = embed(start, swap=swap)
        out = causal_conv1d_update(x, state.view, weight, bias, indices, activation, backend=backend)
        state.assert_canaries()
        assert_untouched(start, state.view, layout.slots)
        return [out, state.view]

    out, state = assert_repeatable(lambda: run("triton"))
    expected, expected_state = run("reference")
    assert_close("causal_conv1d_update", out, expected)
    assert bits_equal(state, expected_state)


@pytest.mark.parametrize("channels", [1, 75, 130])
def test_tiles_of_full_size(monkeypatch, channels):
    monkeypatch.undo()
    for name, value in (("TOKENS", 32), ("CHANNELS", 128), ("STEP_CHANNELS", 256)):
        monkeypatch.setattr(ours, name, value)
    make = cases.Maker(3, torch.float32)
    lengths = [33, 0, 1, 75, 64]
    x, weight, bias, start = make(sum(lengths), channels), make(channels, 4), make(1, channels)[0], make(5, channels, 3)
    cu, initial = torch.tensor([0, *lengths]).cumsum(0), torch.tensor([True, True, True, False, True])
    results = []
    for backend in ("triton", "reference"):
        state = start.clone()
        indices = torch.tensor([3, 1, 4, 0, 2])
        out = causal_conv1d_varlen(x, weight, bias, cu, state, indices, initial, "silu", backend=backend)
        step = causal_conv1d_update(x[:5], state, weight, bias, indices, "silu", backend=backend)
        results.append((out, step, state))
    assert_close("causal_conv1d_varlen", results[0][0], results[1][0])
    assert_close("causal_conv1d_update", results[0][1], results[1][1])
    assert bits_equal(results[0][2], results[1][2])


@pytest.mark.parametrize("lengths", [(8, 0, 8), (0, 4, 0, 0, 5), (4, 4), (3, 5, 0), (1,) * 9])
def test_every_sequence_has_its_own_tokens(lengths):
    # Programs of empty sequences, and sequences that begin or end at a tile's edge: the map from programs to tokens.
    make = cases.Maker(2, torch.float64)
    x, weight, start = make(sum(lengths), 3), make(3, 3), make(len(lengths), 3, 2)
    cu, indices = torch.tensor([0, *lengths]).cumsum(0).int(), torch.arange(len(lengths)).flip(0)
    state = start.clone()
    out = causal_conv1d_varlen(
        x, weight, None, cu, state, indices, torch.ones(len(lengths), dtype=torch.bool), None, backend="triton"
    )
    for b, length in enumerate(lengths):
        begin, slot = int(cu[b]), int(indices[b])
        for d in range(3):
            line = np.concatenate((start[slot, d].numpy(), x[begin : begin + length, d].numpy())).astype(np.longdouble)
            expected = np.convolve(line, weight[d].numpy()[::-1].astype(np.longdouble), mode="valid")
            np.testing.assert_allclose(out[begin : begin + length, d].numpy(), expected[:length], rtol=0, atol=1e-14)
            assert state[slot, d].tolist() == line[-2:].astype(np.float64).tolist()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_agrees_with_transformers(dtype):
    from transformers.models.jamba.modeling_jamba import causal_conv1d_fn
    from transformers.models.jamba.modeling_jamba import causal_conv1d_update as their_update

    make = cases.Maker(12, dtype)
    x, weight, bias, state = make(9, 8), make(8, 4), make(1, 8)[0], make(3, 8, 3)
    theirs = causal_conv1d_fn(x.t()[None], weight, bias, activation="silu")[0].t()
    indices, no = torch.tensor([1]), torch.tensor([False])
    out = causal_conv1d_varlen(
        x, weight, bias, torch.tensor([0, 9]), state.clone(), indices, no, "silu", backend="triton"
    )
    assert_close("causal_conv1d_varlen", out, theirs)
    their_state = state[:2].clone()
    stepped = their_update(x[:2, :, None], their_state, weight, bias, activation="silu")[:, :, 0]
    out = causal_conv1d_update(x[:2], state, weight, bias, torch.tensor([0, 1]), "silu", backend="triton")
    assert_close("causal_conv1d_update", out, stepped)
    assert bits_equal(state[:2], their_state)


def test_the_state_of_a_slot_that_is_not_read_may_be_anything():
    make, state = cases.Maker(1, torch.float32), torch.full((2, 4, 3), torch.nan)
    where = torch.tensor([0, 2]), state, torch.tensor([1]), torch.tensor([False])
    x = make(2, 4)
    out = causal_conv1d_varlen(x, make(4, 4), None, *where, None, backend="triton")
    assert bool(out.isfinite().all())
    assert bool(state[0].isnan().all())
    assert state[1].tolist() == torch.cat([torch.zeros(4, 1), x.t()], 1).tolist()


def test_nothing_to_do():
    state, none = torch.ones(2, 4, 3), torch.tensor([], dtype=torch.int64)
    weight, no = torch.ones(4, 4), torch.tensor([], dtype=torch.bool)
    out = causal_conv1d_varlen(
        torch.ones(0, 4), weight, None, torch.tensor([0]), state, none, no, None, backend="triton"
    )
    assert out.shape == (0, 4)
    assert causal_conv1d_update(torch.ones(0, 4), state, weight, None, none, None, backend="triton").shape == (0, 4)
    assert bool((state == 1).all())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_offsets_beyond_32_bits(tmp_path, axis):
    make = cases.Maker(5, torch.float16)
    start, flat = make(3, 3, 3), min(axis, 1)
    x, weight = (far(tmp_path, name, make(3, n), flat) for name, n in (("x", 3), ("weight", 4)))
    bias = far(tmp_path, "bias", make(1, 3)[0])
    initial, tokens = torch.ones(1, dtype=torch.bool), torch.tensor([0, 3], dtype=torch.int32)
    slot, slots = torch.tensor([2], dtype=torch.int32), torch.tensor([2, 1, 0], dtype=torch.int32)
    results = []
    for backend in ("triton", "reference"):
        state = far(tmp_path, f"state-{backend}", start, axis)
        out = causal_conv1d_varlen(x, weight, bias, tokens, state, slot, initial, None, backend=backend)
        step = causal_conv1d_update(x, state, weight, bias, slots, None, backend=backend)
        results.append((out, step, state.clone()))
    assert_close("causal_conv1d_varlen", results[0][0], results[1][0])
    assert_close("causal_conv1d_update", results[0][1], results[1][1])
    assert bits_equal(results[0][2], results[1][2])
