import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.config.errors import ConfigError, Fault
from staticfire.harness.plugin.refusal import Refusal, RefusedError, disagreement, refusal_of
from vllm_messages import SAID

CODES = st.lists(st.sampled_from(["SF101", "SF201", "SF401", "unknown-option"]), min_size=1, max_size=3, unique=True)


def fault(code):
    return Fault(type=code.lower(), field="x", message="m", code=code)


@given(codes=CODES, expected=CODES)
def test_a_refusal_agrees_exactly_when_the_sets_of_rules_are_equal(codes, expected):
    refusal = refusal_of(ConfigError([fault(code) for code in codes]))
    assert refusal is not None
    agreed = disagreement(refusal, expected, {}) is None
    assert agreed == (set(codes) == set(expected))


def test_other_errors_are_no_refusals():
    assert refusal_of(ValueError("chunked prefill is required")) is None
    assert refusal_of(AssertionError()) is None


@pytest.mark.parametrize(
    "message",
    [
        "Chunked prefill is required for mamba cache mode 'align'.",
        "Chunked prefill is required for Mamba prefix caching.",
    ],
)
def test_the_words_of_vllm_stand_for_the_founding_rule(message):
    refusal = refusal_of(RefusedError(f"vLLM refuses: AssertionError: {message}"))
    assert refusal is not None
    assert disagreement(refusal, ["SF101"], {}) is None


@pytest.mark.parametrize("said", SAID, ids=lambda said: said.rule)
def test_every_refusal_that_vllm_has_words_for_is_told_by_its_rule(said):
    refusal = Refusal(f"1 validation error for VllmConfig\n  Value error, {said.text} [type=value_error]")
    assert disagreement(refusal, [said.rule], {}) is None
    assert disagreement(refusal, ["SF205"], {}) is not None


def test_two_rules_at_once_are_both_asked_for():
    both = Refusal("\n".join(said.text for said in SAID if said.rule in {"SF201", "SF202"}))
    assert disagreement(both, ["SF201", "SF202"], {}) is None
    assert "words of SF301" in str(disagreement(both, ["SF201", "SF301"], {}))


def test_other_words_are_another_reason():
    found = disagreement(Refusal("out of memory"), ["SF101"], {})
    assert found is not None
    assert "not in the words of SF101" in found


def test_a_rule_without_known_words_is_never_taken_on_trust():
    found = disagreement(Refusal("no experts"), ["SF401"], {})
    assert found is not None
    assert "words={'SF401'" in found
    assert disagreement(Refusal("no experts"), ["SF401"], {"SF401": "no experts"}) is None
