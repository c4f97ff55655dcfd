from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from extended_precision import long_double_scan
from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.selective_scan import make_metadata, selective_scan_varlen, selective_state_update
from staticfire.kernels.selective_scan import torch as quick
from staticfire.kernels.slots import make_slots
from staticfire.kernels.testing import assert_close, assert_untouched, bits_equal, embed

pytestmark = pytest.mark.engine

optional = st.fixed_dictionaries({name: st.booleans() for name in ("D", "z", "delta_bias", "delta_softplus")})


def inputs(make, tokens, channels, states, chosen) -> dict[str, Any]:
    """Arguments u .. delta_softplus as a mapping; decays and steps have the signs that a model gives them."""
    wide = compute_dtype(torch.empty(0, dtype=make.dtype))
    delta = make(tokens, channels)
    return {
        "u": make(tokens, channels),
        "delta": delta if chosen["delta_softplus"] else delta.abs(),
        "A": -make(channels, states).abs().to(wide),
        "B": make(tokens, states),
        "C": make(tokens, states),
        "D": make(1, channels)[0] if chosen["D"] else None,
        "z": make(tokens, channels) if chosen["z"] else None,
        "delta_bias": make(1, channels)[0].abs() if chosen["delta_bias"] else None,
        "delta_softplus": chosen["delta_softplus"],
    }


def scan(arguments, cu_seqlens, state, slots, initial, **options) -> torch.Tensor:
    return selective_scan_varlen(
        **arguments, cu_seqlens=cu_seqlens, ssm_state=state, state_indices=slots, has_initial_state=initial, **options
    )


def update(state, arguments, indices, **options) -> torch.Tensor:
    return selective_state_update(state, **arguments, state_indices=indices, **options)


def rows(arguments, index) -> dict[str, Any]:
    """The same arguments for some of the tokens."""
    per_token = ("u", "delta", "B", "C", "z")
    return {k: v[index] if k in per_token and v is not None else v for k, v in arguments.items()}


ALL = dict.fromkeys(("D", "z", "delta_bias", "delta_softplus"), True)


@cases.examples
@given(cases.makers(), cases.layouts(), st.integers(1, 9), optional, st.booleans(), st.booleans(), st.booleans())
def test_varlen_agrees_with_reference(make, layout, states, chosen, swap, shared, wide_state):
    arguments = inputs(make, layout.tokens, 6, states, chosen)
    start = make(layout.pool, 6, states)
    if wide_state:
        start = start.to(compute_dtype(start))
    where = (layout.state_indices, layout.has_initial_state)
    metadata = make_metadata(layout.cu_seqlens, *where) if shared else None
    outputs = []
    for backend in ("torch", "reference"):
        state = embed(start, swap=swap)
        out = scan(arguments, layout.cu_seqlens, state.view, *where, metadata=metadata, backend=backend)
        state.assert_canaries()
        assert_untouched(start, state.view, layout.written)
        outputs.append((out, state.view))
    assert_close("selective_scan_varlen", outputs[0][0], outputs[1][0])
    assert_close("selective_scan_varlen", outputs[0][1], outputs[1][1], dtype=start.dtype)


@cases.examples
@given(cases.makers(), cases.layouts(), st.integers(1, 9), optional, st.booleans(), st.booleans())
def test_update_agrees_with_reference(make, layout, states, chosen, swap, shared):
    arguments = inputs(make, len(layout.slots), 6, states, chosen)
    start = make(layout.pool, 6, states)
    slots = make_slots(layout.state_indices) if shared else None
    outputs = []
    for backend in ("torch", "reference"):
        state = embed(start, swap=swap)
        out = update(state.view, arguments, layout.state_indices, slots=slots, backend=backend)
        state.assert_canaries()
        assert_untouched(start, state.view, layout.slots)
        outputs.append((out, state.view))
    assert_close("selective_state_update", outputs[0][0], outputs[1][0])
    assert_close("selective_state_update", outputs[0][1], outputs[1][1])


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_float64_equals_long_double(backend):
    make = cases.Maker(21, torch.float64)
    arguments = inputs(make, 40, 5, 4, ALL)
    state = make(3, 5, 4)
    expected, last = long_double_scan(arguments, state[2])
    stepped = state.clone()
    out = scan(
        arguments,
        torch.tensor([0, 40]),
        state,
        torch.tensor([2]),
        torch.tensor([True]),
        backend=backend,
    )
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(state[2].numpy(), last, rtol=1e-12, atol=1e-13)
    for t in range(40):
        step = rows(arguments, slice(t, t + 1))
        y = update(stepped, step, torch.tensor([2]), backend=backend)
        np.testing.assert_allclose(y[0].numpy(), expected[t], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(stepped[2].numpy(), last, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_scan_agrees_with_transformers(backend):
    from transformers.models.jamba.modeling_jamba import mamba_selective_scan

    arguments = inputs(cases.Maker(22, torch.float32), 23, 8, 4, ALL)
    state = torch.full((1, 8, 4), torch.nan)
    ours = scan(
        arguments,
        torch.tensor([0, 23]),
        state,
        torch.tensor([0]),
        torch.tensor([False]),
        backend=backend,
    )
    lines = {k: v.t()[None] if k in ("u", "delta", "B", "C", "z") else v for k, v in arguments.items()}
    theirs, last = mamba_selective_scan(*lines.values(), return_last_state=True)
    assert_close("selective_scan_varlen", ours, theirs[0].t())
    assert_close("selective_scan_varlen", state, last)


@pytest.mark.parametrize("backend", ["torch", "reference"])
def test_update_agrees_with_transformers(backend):
    from transformers.models.jamba.modeling_jamba import mamba_selective_state_update

    make = cases.Maker(23, torch.float32)
    a = inputs(make, 3, 8, 4, ALL)
    state = make(5, 8, 4)
    their_state = state[[4, 0, 2]]
    theirs = mamba_selective_state_update(
        their_state, a["u"], a["delta"], a["A"], a["B"], a["C"], a["D"], a["delta_bias"], True, z=a["z"]
    )
    ours = update(state, a, torch.tensor([4, 0, 2]), backend=backend)
    assert_close("selective_state_update", ours, theirs)
    assert_close("selective_state_update", state[[4, 0, 2]], their_state)


@cases.examples
@given(cases.seeds, st.lists(st.lists(st.integers(0, 20), max_size=4), min_size=1, max_size=3), st.integers(10, 300))
def test_cutting_a_prompt_changes_nothing(seed, cuts, block_elements):
    make = cases.Maker(seed, torch.float64)
    channels, states, lengths = 4, 3, tuple(20 - 4 * b for b in range(len(cuts)))
    arguments = inputs(make, sum(lengths), channels, states, ALL)
    cu, slots = torch.tensor([0, *lengths]).cumsum(0), torch.arange(len(cuts)) + 1
    whole = make(5, channels, states)
    parts, steps = whole.clone(), whole.clone()
    fresh = torch.zeros(len(cuts), dtype=torch.bool)
    out = scan(arguments, cu, whole, slots, fresh)
    got, done = torch.empty_like(out), [0] * len(cuts)
    patched = pytest.MonkeyPatch()
    patched.setattr(quick, "BLOCK_ELEMENTS", block_elements)
    for counts in cases.split(lengths, cuts):
        starts = [int(cu[b]) + done[b] for b in range(len(cuts))]
        index = torch.cat([torch.arange(s, s + n) for s, n in zip(starts, counts, strict=True)])
        cu_part, started = torch.tensor([0, *counts]).cumsum(0), torch.tensor([d > 0 for d in done])
        got[index] = scan(rows(arguments, index), cu_part, parts, slots, started)
        done = [d + n for d, n in zip(done, counts, strict=True)]
    patched.undo()
    assert_close("selective_scan_varlen", got, out)
    assert_close("selective_scan_varlen", parts, whole)
    steps[slots] = 0
    for b, length in enumerate(lengths):
        for t in range(int(cu[b]), int(cu[b]) + length):
            y = update(steps, rows(arguments, slice(t, t + 1)), slots[b : b + 1])
            assert_close("selective_state_update", y[0], out[t])
    assert_close("selective_state_update", steps, whole)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_strong_decay_neither_overflows_nor_turns_to_nan(dtype):
    # A scan that divides by products of decays fails here: exp(-60 * 200) is 0 in every dtype.
    tokens = 200
    make = cases.Maker(4, dtype)
    arguments = inputs(make, tokens, 4, 3, dict.fromkeys(ALL, False))
    arguments["A"] = torch.full((4, 3), -60.0, dtype=dtype)
    arguments["delta"] = torch.ones(tokens, 4, dtype=dtype)
    states = [torch.zeros(1, 4, 3, dtype=dtype) for _ in range(2)]
    where = torch.tensor([0]), torch.tensor([False])
    quick_out = scan(arguments, torch.tensor([0, tokens]), states[0], *where)
    slow_out = scan(arguments, torch.tensor([0, tokens]), states[1], *where, backend="reference")
    assert_close("selective_scan_varlen", quick_out, slow_out)
    assert_close("selective_scan_varlen", states[0], states[1])


def test_long_sequences_of_many_lengths_agree_with_reference():
    make = cases.Maker(31, torch.float64)
    lengths = [150, 1, 0, 260, 33, 150]
    arguments = inputs(make, sum(lengths), 4, 3, ALL)
    cu = torch.tensor([0, *lengths]).cumsum(0)
    where = torch.tensor([5, 0, 1, 3, 2, 4]), torch.tensor([True, False, True, False, True, True])
    start = make(6, 4, 3)
    states = [start.clone(), start.clone()]
    quick_out = scan(arguments, cu, states[0], *where)
    slow_out = scan(arguments, cu, states[1], *where, backend="reference")
    assert_close("selective_scan_varlen", quick_out, slow_out)
    assert_close("selective_scan_varlen", states[0], states[1])


def test_a_narrow_state_is_rounded_only_when_it_is_left_in_the_pool():
    make = cases.Maker(6, torch.float32)
    arguments = inputs(make, 12, 4, 3, ALL)
    narrow, wide = torch.zeros(1, 4, 3, dtype=torch.bfloat16), torch.zeros(1, 4, 3)
    where = torch.tensor([0]), torch.tensor([False])
    first = scan(arguments, torch.tensor([0, 12]), narrow, *where)
    second = scan(arguments, torch.tensor([0, 12]), wide, *where)
    assert bits_equal(first, second)
    assert bits_equal(narrow, wide.to(torch.bfloat16))


def test_twice_is_bitwise_the_same():
    make = cases.Maker(1, torch.float32)
    arguments = inputs(make, 50, 64, 8, ALL)
    state = make(3, 64, 8)
    where = torch.tensor([2, 0]), torch.tensor([True, False])
    results = []
    for _ in range(2):
        kept = state.clone()
        results.append((scan(arguments, torch.tensor([0, 20, 50]), kept, *where), kept))
    assert bits_equal(results[0][0], results[1][0])
    assert bits_equal(results[0][1], results[1][1])


def test_tokens_of_no_sequence_are_refused():
    tokens, state = torch.ones(3, 2), torch.zeros(1, 2, 1)
    where = torch.tensor([0, 2]), state, torch.tensor([0]), torch.tensor([True])
    arguments = tokens, tokens, -torch.ones(2, 1), tokens[:, :1], tokens[:, :1], None, None, None, True
    with pytest.raises(ValueError, match="u has as many rows as its sequences, 2; got 3"):
        selective_scan_varlen(*arguments, *where)
