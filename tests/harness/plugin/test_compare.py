"""The comparisons of vLLM's suite: what is close, what is not, and what is no comparison."""

import pytest

from staticfire.harness.plugin.compare import check_logprobs_close, check_outputs_equal


def outputs(*tokens, logprobs=True, text=None):
    candidates = [{token: 0.0, 99: -1.0} for token in tokens] if logprobs else None
    return list(tokens), text or " ".join(map(str, tokens)), candidates


def close(one, other, **more):
    check_logprobs_close(outputs_0_lst=[one], outputs_1_lst=[other], name_0="a", name_1="b", **more)


@pytest.mark.filterwarnings("error")
def test_equal_outputs_are_close():
    close(outputs(1, 2), outputs(1, 2))
    close(outputs(7, 1, 2), outputs(1, 2, text="7 1 2"), num_outputs_0_skip_tokens=1)
    check_outputs_equal(outputs_0_lst=[([1], "x")], outputs_1_lst=[([1], "x")], name_0="a", name_1="b")


@pytest.mark.parametrize(
    ("one", "other", "more", "words"),
    [
        (outputs(1, 2), outputs(1, 3), {}, "token 1: a has 2, b has 3; 3 is not among the candidates of a"),
        (outputs(1, 2, logprobs=False), outputs(1, 3), {}, "a has no logprobs to judge it by"),
        ((*outputs(1), [None]), outputs(1), {}, "4 values from a, 3 from b"),
        ((*outputs(1), [None, {1: 0}]), (*outputs(1), [None, {2: 0}]), {}, "differ at 1"),
        ((*outputs(1), None), (*outputs(1), [None]), {}, "only one side has them"),
    ],
)
def test_outputs_that_are_not_close(one, other, more, words):
    with pytest.raises(AssertionError) as told:
        close(one, other, **more)
    assert words in str(told.value)


def test_a_close_call_warns_and_ends_the_comparison():
    one = ([1, 2, 5], "x", [{1: 0.0}, {2: 0.0, 3: -0.1}, {5: 0.0}])
    other = ([1, 3, 6], "y", [{1: 0.0}, {3: 0.0, 2: -0.1}, {6: 0.0}])
    with pytest.warns(UserWarning, match="part at 1"):
        close(one, other)
    close(one, other, warn_on_mismatch=False)
    with pytest.raises(AssertionError, match="tokens part at 1"):
        check_outputs_equal(outputs_0_lst=[one[:2]], outputs_1_lst=[other[:2]], name_0="a", name_1="b")


def test_tuples_of_another_shape_are_refused():
    with pytest.raises(ValueError, match="3 or 4 values"):
        close(([1], "x"), ([1], "x"))
    with pytest.raises(AssertionError, match="1 outputs of a, 0 of b"):
        check_outputs_equal(outputs_0_lst=[([1], "x")], outputs_1_lst=[], name_0="a", name_1="b")
