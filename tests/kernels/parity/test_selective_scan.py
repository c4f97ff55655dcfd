from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from extended_precision import long_double_scan
from memory_layouts import far, fenced
from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.parity import assert_repeatable
from staticfire.kernels.selective_scan import selective_scan_varlen, selective_state_update
from staticfire.kernels.selective_scan import triton as ours
from staticfire.kernels.selective_scan.tiles import Tile, choose
from staticfire.kernels.testing import assert_close, assert_untouched, bits_equal, embed

pytestmark = [pytest.mark.engine, pytest.mark.interp]

OPTIONAL = ("D", "z", "delta_bias", "delta_softplus")
ALL = dict.fromkeys(OPTIONAL, True)
optional = st.fixed_dictionaries(dict.fromkeys(OPTIONAL, st.booleans()))
PER_TOKEN = ("u", "delta", "B", "C", "z")


@pytest.fixture(scope="module", autouse=True)
def small_tiles():
    """Let few channels make many programs."""

    def small(channels, states, item, *, step):
        return choose(channels, states, item, step=step)._replace(channels=4)

    patch = pytest.MonkeyPatch()
    patch.setattr(ours, "choose", small)
    yield
    patch.undo()


def inputs(make, tokens, channels, states, chosen) -> dict[str, Any]:
    """Arguments u .. delta_softplus; time steps reach from where softplus is tiny to where it is the identity."""
    wide = compute_dtype(torch.empty(0, dtype=make.dtype))
    delta = make(tokens, channels, scale=4.0)
    vectors = make(3, channels)
    return {
        "u": make(tokens, channels),
        "delta": delta if chosen["delta_softplus"] else delta.abs(),
        "A": -make(channels, states).abs().to(wide),
        "B": make(tokens, states),
        "C": make(tokens, states),
        "D": vectors.t()[:, 0] if chosen["D"] else None,
        "z": make(tokens, channels) if chosen["z"] else None,
        "delta_bias": vectors.t()[:, 1].abs() if chosen["delta_bias"] else None,
        "delta_softplus": chosen["delta_softplus"],
    }


def scan(arguments, cu_seqlens, state, slots, initial, backend="triton") -> torch.Tensor:
    return selective_scan_varlen(
        **arguments,
        cu_seqlens=cu_seqlens,
        ssm_state=state,
        state_indices=slots,
        has_initial_state=initial,
        backend=backend,
    )


def update(state, arguments, indices, backend="triton") -> torch.Tensor:
    return selective_state_update(state, **arguments, state_indices=indices, backend=backend)


def rows(arguments, index) -> dict[str, Any]:
    """The same arguments for some of the tokens."""
    return {k: v[index] if k in PER_TOKEN and v is not None else v for k, v in arguments.items()}


@cases.examples
@given(
    cases.makers(),
    cases.layouts(max_length=5, max_sequences=4),
    st.integers(1, 9),
    optional,
    st.booleans(),
    st.booleans(),
)
def test_varlen(make, layout, states, chosen, swap, wide_state):
    arguments = inputs(make, layout.tokens, 6, states, chosen)
    start = make(layout.pool, 6, states)
    if wide_state:
        start = start.to(compute_dtype(start))
    where = fenced(layout.cu_seqlens), fenced(layout.state_indices), layout.has_initial_state

    def run(backend):
        state = embed(start, swap=swap)
        out = scan(arguments, where[0], state.view, *where[1:], backend)
        state.assert_canaries()
        assert_untouched(start, state.view, layout.written)
        return [out, state.view]

    out, state = assert_repeatable(lambda: run("triton"))
    expected, expected_state = run("reference")
    assert_close("selective_scan_varlen", out, expected)
    assert_close("selective_scan_varlen", state, expected_state, dtype=start.dtype)


@cases.examples
@given(cases.makers(), cases.layouts(), st.integers(1, 9), optional, st.booleans(), st.booleans())
def test_update(make, layout, states, chosen, swap, wide_state):
    arguments = inputs(make, len(layout.slots), 6, states, chosen)
    start = make(layout.pool, 6, states)
    if wide_state:
        start = start.to(compute_dtype(start))
    indices = fenced(layout.state_indices)

    def run(backend):
        state = embed(start, swap=swap)
        out = update(state.view, arguments, indices, backend)
        state.assert_canaries()
        assert_untouched(start, state.view, layout.slots)
        return [out, state.view]

    out, state = assert_repeatable(lambda: run("triton"))
    expected, expected_state = run("reference")
    assert_close("selective_state_update", out, expected)
    assert_close("selective_state_update", state, expected_state, dtype=start.dtype)


def test_float64_equals_long_double():
    make = cases.Maker(21, torch.float64)
    arguments = inputs(make, 40, 5, 4, ALL)
    state = make(3, 5, 4)
    stepped = state.clone()
    expected, last = long_double_scan(arguments, state[2])
    out = scan(arguments, torch.tensor([0, 40]), state, torch.tensor([2]), torch.tensor([True]))
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(state[2].numpy(), last, rtol=1e-12, atol=1e-13)
    for t in range(40):
        y = update(stepped, rows(arguments, slice(t, t + 1)), torch.tensor([2]))
        np.testing.assert_allclose(y[0].numpy(), expected[t], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(stepped[2].numpy(), last, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_small_time_steps_keep_their_digits(dtype):
    # h after one token is softplus(delta) u B; log(1 + e) of a float32 would be wrong in the third digit here.
    delta = torch.linspace(-16, 25, 42, dtype=dtype)[None]
    one = torch.ones(1, 1, dtype=dtype)
    state = torch.zeros(1, 42, 1, dtype=dtype)
    update(
        state,
        {
            "u": torch.ones_like(delta),
            "delta": delta,
            "A": torch.zeros(42, 1, dtype=dtype),
            "B": one,
            "C": one,
            "D": None,
            "z": None,
            "delta_bias": None,
            "delta_softplus": True,
        },
        torch.tensor([0]),
    )
    expected = np.log1p(np.exp(delta[0].numpy().astype(np.longdouble)))
    above = delta[0] > 20  # there it is the identity, and at 20 it is not yet
    np.testing.assert_allclose(state[0, ~above, 0].numpy(), expected[~above.numpy()], rtol=8 * torch.finfo(dtype).eps)
    assert state[0, above, 0].tolist() == delta[0, above].tolist()


def test_agrees_with_transformers():
    from transformers.models.jamba.modeling_jamba import mamba_selective_scan, mamba_selective_state_update

    arguments = inputs(cases.Maker(22, torch.float32), 23, 8, 4, ALL)
    state = torch.full((1, 8, 4), torch.nan)
    out = scan(arguments, torch.tensor([0, 23]), state, torch.tensor([0]), torch.tensor([False]))
    lines = {k: v.t()[None] if k in PER_TOKEN else v for k, v in arguments.items()}
    theirs, last = mamba_selective_scan(*lines.values(), return_last_state=True)
    assert_close("selective_scan_varlen", out, theirs[0].t())
    assert_close("selective_scan_varlen", state, last)

    make = cases.Maker(23, torch.float32)
    a, pool = inputs(make, 3, 8, 4, ALL), make(5, 8, 4)
    their_state = pool[[4, 0, 2]]
    theirs = mamba_selective_state_update(
        their_state, a["u"], a["delta"], a["A"], a["B"], a["C"], a["D"], a["delta_bias"], True, z=a["z"]
    )
    out = update(pool, a, torch.tensor([4, 0, 2]))
    assert_close("selective_state_update", out, theirs)
    assert_close("selective_state_update", pool[[4, 0, 2]], their_state)


@cases.examples
@given(cases.seeds, st.lists(st.lists(st.integers(0, 6), max_size=3), min_size=1, max_size=2))
def test_no_bit_depends_on_where_a_prompt_is_cut(seed, cuts):
    make = cases.Maker(seed, torch.float32)
    lengths = tuple(6 - 2 * b for b in range(len(cuts)))
    arguments = inputs(make, sum(lengths), 4, 3, ALL)
    cu, slots = torch.tensor([0, *lengths]).cumsum(0), torch.arange(len(cuts)) + 1
    whole = make(5, 4, 3)
    parts, steps = whole.clone(), whole.clone()
    out = scan(arguments, cu, whole, slots, torch.zeros(len(cuts), dtype=torch.bool))
    got, done = torch.empty_like(out), [0] * len(cuts)
    for counts in cases.split(lengths, cuts):
        starts = [int(cu[b]) + done[b] for b in range(len(cuts))]
        index = torch.cat([torch.arange(s, s + n) for s, n in zip(starts, counts, strict=True)])
        cu_part, started = torch.tensor([0, *counts]).cumsum(0), torch.tensor([d > 0 for d in done])
        got[index] = scan(rows(arguments, index), cu_part, parts, slots, started)
        done = [d + n for d, n in zip(done, counts, strict=True)]
    assert bits_equal(got, out)
    assert bits_equal(parts, whole)
    steps[slots] = 0
    for b, length in enumerate(lengths):
        for t in range(int(cu[b]), int(cu[b]) + length):
            y = update(steps, rows(arguments, slice(t, t + 1)), slots[b : b + 1])
            assert bits_equal(y[0], out[t])
    assert bits_equal(steps, whole)


def test_strong_decay_and_strange_values():
    tokens, make = 6, cases.Maker(4, torch.float32)
    arguments = inputs(make, tokens, 5, 3, dict.fromkeys(OPTIONAL, True))
    arguments["A"] = torch.full((5, 3), -6000.0)
    arguments["delta"][2, 1] = torch.nan
    arguments["u"][3, 2] = torch.inf
    arguments["z"][4, 3] = -500.0
    where = torch.tensor([0, tokens]), torch.tensor([0]), torch.tensor([False])
    states = [torch.zeros(1, 5, 3) for _ in range(2)]
    out = scan(arguments, where[0], states[0], *where[1:])
    assert_close("selective_scan_varlen", out, scan(arguments, where[0], states[1], *where[1:], "reference"))
    assert_close("selective_scan_varlen", states[0], states[1])
    assert bool(states[0][0, 1].isnan().all())


@pytest.mark.parametrize(("channels", "states"), [(1, 1), (75, 16), (33, 63), (9, 130), (9, 256)])
def test_tiles_of_full_size(monkeypatch, channels, states):
    monkeypatch.setattr(ours, "choose", choose)
    make = cases.Maker(3, torch.float32)
    arguments = inputs(make, 5, channels, states, ALL)
    results = []
    start = make(5, channels, states)
    for backend in ("triton", "reference"):
        state = start.clone()
        cu, slots = torch.tensor([0, 2, 2, 5]), torch.tensor([4, 1, 0])
        out = scan(arguments, cu, state, slots, torch.tensor([True, True, False]), backend)
        step = update(state, arguments, torch.tensor([0, 1, 2, 3, 4]), backend)
        results.append((out, step, state))
    assert_close("selective_scan_varlen", results[0][0], results[1][0])
    assert_close("selective_state_update", results[0][1], results[1][1])
    assert_close("selective_scan_varlen", results[0][2], results[1][2])


def test_nothing_to_do():
    arguments = inputs(cases.Maker(1, torch.float32), 0, 4, 3, ALL)
    state, none = torch.ones(2, 4, 3), torch.tensor([], dtype=torch.int64)
    assert scan(arguments, torch.tensor([0]), state, none, torch.tensor([], dtype=torch.bool)).shape == (0, 4)
    assert update(state, arguments, none).shape == (0, 4)
    assert bool((state == 1).all())


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_offsets_beyond_32_bits(tmp_path, axis):
    make, flat = cases.Maker(5, torch.float16), min(axis, 1)
    near, start = inputs(make, 3, 3, 3, ALL), make(3, 3, 3)
    arguments = {
        k: far(tmp_path, k, v, flat if v.dim() > 1 else 0) if isinstance(v, torch.Tensor) else v
        for k, v in near.items()
    }
    tokens, slot, slots = (torch.tensor(v, dtype=torch.int32) for v in ([0, 3], [2], [2, 1, 0]))
    results = []
    for backend in ("triton", "reference"):
        state = far(tmp_path, f"state-{backend}", start, axis)
        out = scan(arguments, tokens, state, slot, torch.tensor([True]), backend)
        step = update(state, arguments, slots, backend)
        results.append((out, step, state.clone()))
    assert_close("selective_scan_varlen", results[0][0], results[1][0])
    assert_close("selective_state_update", results[0][1], results[1][1])
    assert_close("selective_scan_varlen", results[0][2], results[1][2])


@pytest.mark.parametrize("item", [4, 8])
@pytest.mark.parametrize("states", [1, 7, 16, 64, 128, 200, 256])
def test_tiles_hold_no_more_than_registers_do(states, item):
    for step in (False, True):
        tile = choose(8192, states, item, step=step)
        assert tile.states == 1 << (states - 1).bit_length()
        assert tile.channels * tile.states * item <= 4096 * tile.warps * (1 if not step else 2)
    assert choose(3, 16, 4, step=True) == Tile(4, 16, 4, 1)
