import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.causal_conv1d import causal_conv1d_update, causal_conv1d_varlen, make_metadata
from staticfire.kernels.slots import make_slots
from staticfire.kernels.testing import assert_close, assert_untouched, bits_equal, embed

pytestmark = pytest.mark.engine

WIDTHS = st.integers(1, 5)
ACTIVATIONS = st.sampled_from(["silu", None])


@cases.examples
@given(cases.makers(), cases.layouts(), WIDTHS, st.booleans(), ACTIVATIONS, st.booleans(), st.booleans())
def test_varlen_agrees_with_reference(make, layout, width, biased, activation, swap, shared):
    channels = 6
    x, weight = make(layout.tokens, channels), make(channels, width)
    bias = make(1, channels)[0] if biased else None
    start = make(layout.pool, channels, width - 1)
    arguments = (layout.cu_seqlens, layout.state_indices, layout.has_initial_state)
    metadata = make_metadata(*arguments, width) if shared else None
    outputs = []
    for backend in ("torch", "reference"):
        state = embed(start, swap=swap)
        out = causal_conv1d_varlen(
            x,
            weight,
            bias,
            arguments[0],
            state.view,
            *arguments[1:],
            activation,
            metadata=metadata,
            backend=backend,
        )
        state.assert_canaries()
        assert_untouched(start, state.view, layout.written)
        outputs.append((out, state.view))
    assert_close("causal_conv1d_varlen", outputs[0][0], outputs[1][0])
    assert bits_equal(outputs[0][1], outputs[1][1])


@cases.examples
@given(cases.makers(), cases.layouts(), WIDTHS, st.booleans(), ACTIVATIONS, st.booleans(), st.booleans())
def test_update_agrees_with_reference(make, layout, width, biased, activation, swap, shared):
    channels, indices = 6, layout.state_indices
    x, weight = make(len(layout.slots), channels), make(channels, width)
    bias = make(1, channels)[0] if biased else None
    start = make(layout.pool, channels, width - 1)
    slots = make_slots(indices) if shared else None
    outputs = []
    for backend in ("torch", "reference"):
        state = embed(start, swap=swap)
        out = causal_conv1d_update(x, state.view, weight, bias, indices, activation, slots=slots, backend=backend)
        state.assert_canaries()
        assert_untouched(start, state.view, layout.slots)
        outputs.append((out, state.view))
    assert_close("causal_conv1d_update", outputs[0][0], outputs[1][0])
    assert bits_equal(outputs[0][1], outputs[1][1])


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_float64_equals_a_convolution_in_long_double(backend):
    make = cases.Maker(11, torch.float64)
    lengths, width, channels = (2, 0, 7, 1), 4, 3
    x, weight, bias = make(10, channels), make(channels, width), make(1, channels)[0]
    state = make(5, channels, width - 1)
    past, cu = state.clone(), torch.tensor([0, 2, 2, 9, 10])
    slots, initial = [4, 0, 2, 1], [True, True, False, True]
    out = causal_conv1d_varlen(
        x, weight, bias, cu, state, torch.tensor(slots), torch.tensor(initial), None, backend=backend
    )
    for b, length in enumerate(lengths):
        begin = int(cu[b])
        for d in range(channels):
            head = past[slots[b], d] if initial[b] else torch.zeros(width - 1, dtype=torch.float64)
            line = np.concatenate((head.numpy(), x[begin : begin + length, d].numpy())).astype(np.longdouble)
            if length:
                taps = weight[d].numpy()[::-1].astype(np.longdouble)
                expected = np.convolve(line, taps, mode="valid") + np.longdouble(float(bias[d]))
                np.testing.assert_allclose(out[begin : begin + length, d].numpy(), expected, rtol=0, atol=1e-14)
                assert state[slots[b], d].tolist() == line[-(width - 1) :].astype(np.float64).tolist()


@pytest.mark.parametrize("backend", ["torch", "reference"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_agrees_with_transformers(backend, dtype):
    from transformers.models.jamba.modeling_jamba import causal_conv1d_fn
    from transformers.models.jamba.modeling_jamba import causal_conv1d_update as their_update

    make = cases.Maker(12, dtype)
    x, weight, bias, state = make(9, 8), make(8, 4), make(1, 8)[0], make(3, 8, 3)
    theirs = causal_conv1d_fn(x.t()[None], weight, bias, activation="silu")[0].t()
    indices, no = torch.tensor([1]), torch.tensor([False])
    ours = causal_conv1d_varlen(
        x, weight, bias, torch.tensor([0, 9]), state.clone(), indices, no, "silu", backend=backend
    )
    assert_close("causal_conv1d_varlen", ours, theirs)
    their_state = state[:2].clone()
    stepped = their_update(x[:2, :, None], their_state, weight, bias, activation="silu")[:, :, 0]
    ours = causal_conv1d_update(x[:2], state, weight, bias, torch.tensor([0, 1]), "silu", backend=backend)
    assert_close("causal_conv1d_update", ours, stepped)
    assert bits_equal(state[:2], their_state)


@cases.examples
@given(cases.seeds, st.lists(st.lists(st.integers(0, 12), max_size=4), min_size=1, max_size=3), st.integers(1, 5))
def test_cutting_a_prompt_changes_nothing(seed, cuts, width):
    make = cases.Maker(seed, torch.float64)
    channels, lengths = 4, tuple(12 - 3 * b for b in range(len(cuts)))
    sequences = [make(n, channels) for n in lengths]
    weight, bias = make(channels, width), make(1, channels)[0]
    slots = torch.arange(len(cuts)) + 1
    whole = make(5, channels, width - 1)
    parts, steps = whole.clone(), whole.clone()
    cu = torch.tensor([0, *lengths]).cumsum(0)
    fresh = torch.zeros(len(cuts), dtype=torch.bool)
    out = causal_conv1d_varlen(torch.cat(sequences), weight, bias, cu, whole, slots, fresh, "silu")
    done = [0] * len(cuts)
    got: list[list[torch.Tensor]] = [[] for _ in cuts]
    for counts in cases.split(lengths, cuts):
        x = torch.cat([s[d : d + n] for s, d, n in zip(sequences, done, counts, strict=True)])
        cu_part = torch.tensor([0, *counts]).cumsum(0)
        started = torch.tensor([d > 0 for d in done])
        y = causal_conv1d_varlen(x, weight, bias, cu_part, parts, slots, started, "silu")
        for b, piece in enumerate(y.split(list(counts))):
            got[b].append(piece)
        done = [d + n for d, n in zip(done, counts, strict=True)]
    assert_close("causal_conv1d_varlen", torch.cat([torch.cat(g) for g in got]), out)
    assert bits_equal(parts, whole)
    steps[slots] = 0
    for b, sequence in enumerate(sequences):
        for t in range(lengths[b]):
            y = causal_conv1d_update(sequence[t : t + 1], steps, weight, bias, slots[b : b + 1], "silu")
            assert_close("causal_conv1d_update", y[0], out[int(cu[b]) + t])
    assert bits_equal(steps, whole)


def test_poison_in_a_slot_that_is_not_read_stays_there():
    make = cases.Maker(1, torch.float32)
    state = torch.full((2, 4, 3), torch.nan)
    out = causal_conv1d_varlen(
        make(5, 4),
        make(4, 4),
        None,
        torch.tensor([0, 5]),
        state,
        torch.tensor([1]),
        torch.tensor([False]),
        None,
    )
    assert bool(out.isfinite().all())
    assert bool(state[1].isfinite().all())
    assert bool(state[0].isnan().all())


def test_twice_is_bitwise_the_same():
    make = cases.Maker(1, torch.float32)
    x, weight, state = make(30, 64), make(64, 4), make(3, 64, 3)
    arguments = torch.tensor([0, 11, 30]), state, torch.tensor([2, 0]), torch.tensor([True, False])
    first = causal_conv1d_varlen(x, weight, None, *arguments[:1], state.clone(), *arguments[2:], "silu")
    second = causal_conv1d_varlen(x, weight, None, *arguments[:1], state.clone(), *arguments[2:], "silu")
    assert bits_equal(first, second)


def test_an_unknown_activation_is_refused():
    x = torch.zeros(1, 2)
    with pytest.raises(ValueError, match="'silu' or None; got 'gelu'"):
        causal_conv1d_update(x, torch.zeros(1, 2, 1), torch.zeros(2, 2), None, torch.tensor([0]), "gelu")  # type: ignore[arg-type]


def test_tokens_of_no_sequence_are_refused():
    x, weight, state = torch.ones(3, 2), torch.ones(2, 2), torch.zeros(1, 2, 1)
    where = torch.tensor([0, 2]), state, torch.tensor([0]), torch.tensor([True])
    with pytest.raises(ValueError, match="x has as many rows as its sequences, 2; got 3"):
        causal_conv1d_varlen(x, weight, None, *where, None)
