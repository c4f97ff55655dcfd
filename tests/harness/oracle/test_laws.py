from pathlib import Path

import pytest

from staticfire.harness.oracle.base import Noise, OracleError, Question
from staticfire.harness.oracle.laws import AGAINST_ITSELF, AGAINST_ORACLE, against_itself, against_oracle

pytestmark = pytest.mark.engine


def ask(dtype, quantization=None, **kept):
    return Question(checkpoint=Path("x"), dtype=dtype, quantization=quantization, max_tokens=1, **kept)


QUIET = Noise(0.0, 0.0, 0.0)
LOUD = Noise(1e6, 1e6, 1e6)


def test_the_laws_of_float32_and_float64_are_fixed_numbers():
    for noise in (QUIET, LOUD):
        assert against_oracle(ask("float32"), noise).max == 1e-4
        assert against_oracle(ask("float32", "experts_int8"), noise).rms == 1e-5
        assert against_itself(ask("float64"), noise).max == 1e-9
        assert against_itself(ask("float64"), noise).margin == 0.0


def test_tokens_may_change_places_within_ten_times_the_noise_in_float32():
    assert against_oracle(ask("float32"), Noise(1e-5, 1e-6, 2e-5)).margin == pytest.approx(1e-4)
    assert against_oracle(ask("float32"), Noise(1e-5, 1e-6, 2e-5)).router == pytest.approx(2e-4)


@pytest.mark.parametrize("dtype", AGAINST_ORACLE)
def test_no_noise_of_the_oracle_excuses_more_than_the_cap(dtype):
    law = AGAINST_ORACLE[dtype]
    loud = law.tolerance(LOUD)
    assert loud.max == (law.max or law.times * law.cap)
    assert loud.rms == (law.rms or law.times * law.cap_rms)
    assert loud.margin == law.margin_times * law.cap
    assert loud.router == law.margin_times * law.cap_router


@pytest.mark.parametrize("dtype", AGAINST_ORACLE)
def test_an_oracle_without_noise_still_allows_rounding(dtype):
    assert against_oracle(ask(dtype), QUIET).max > 0
    assert against_oracle(ask(dtype), QUIET).margin > 0


def test_bfloat16_is_allowed_twice_what_the_oracle_itself_is_off():
    noise = Noise(0.3, 0.05, 0.4)
    allowed = against_oracle(ask("bfloat16"), noise)
    assert (allowed.max, allowed.rms, allowed.margin, allowed.router) == pytest.approx((0.6, 0.1, 0.6, 0.8))


def test_every_dtype_has_both_laws_and_an_unknown_one_is_an_error():
    assert set(AGAINST_ORACLE) == set(AGAINST_ITSELF)
    for law in (lambda dtype: against_oracle(ask(dtype), QUIET), lambda dtype: against_itself(ask(dtype), QUIET)):
        with pytest.raises(OracleError, match="float8"):
            law("float8")


def test_the_noise_of_several_prompts_is_the_largest_of_each():
    assert Noise.of([Noise(1, 5, 2), Noise(3, 4, 1)]) == Noise(3, 5, 2)
    with pytest.raises(ValueError, match="no noise"):
        Noise.of([])


@pytest.mark.parametrize("kept", ["ssm_dtype", "conv_dtype", "kv_dtype"])
def test_a_cache_narrower_than_the_arithmetic_replaces_the_exact_laws(kept):
    noise = Noise(0.01, 0.002, 0.01)
    for law in (against_itself, against_oracle):
        narrow = law(ask("float64", **{kept: "bfloat16"}), noise)
        assert (narrow.max, narrow.margin) == pytest.approx((0.03, 0.03))
        same = law(ask("float64", **{kept: "float64"}), noise)
        assert same.max < 1e-4
    assert against_itself(ask("bfloat16", **{kept: "bfloat16"}), noise) == against_itself(ask("bfloat16"), noise)
