import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import kernel_cases as cases
from staticfire.kernels.state_copy import state_copy
from staticfire.kernels.testing import assert_untouched, bits_equal, embed

pytestmark = pytest.mark.engine

pairs = st.lists(st.tuples(st.integers(-1, 5), st.integers(-1, 5)), max_size=6)


@cases.examples
@given(cases.makers(), pairs, st.sampled_from([(3,), (2, 4), (2, 2, 3)]))
def test_copies_happen_in_order(make, copies, inner):
    start = make(6, *inner)
    model = [row.clone() for row in start]
    for source, target in copies:
        if source >= 0 and target >= 0:
            model[target] = model[source].clone()
    src, dst = (torch.tensor([c[i] for c in copies], dtype=torch.int64) for i in range(2))
    for backend in ("torch", "reference"):
        state = embed(start)
        state_copy(state.view, src, dst, backend=backend)
        state.assert_canaries()
        assert_untouched(start, state.view, {d for s, d in copies if s >= 0 and d >= 0})
        assert bits_equal(state.view, torch.stack(model))


def test_nan_and_negative_zero_keep_their_bits():
    state = torch.tensor([[torch.nan, -0.0], [1.0, 2.0]])
    state_copy(state, torch.tensor([0]), torch.tensor([1]))
    assert bits_equal(state[0], state[1])


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=r"one shape; got \(2,\) and \(1,\)"):
        state_copy(torch.zeros(2, 2), torch.tensor([0, 1]), torch.tensor([0]))
