"""Command lines with changed keywords, held against the reading of the words."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.check import command
from staticfire.harness.check.question import Question
from staticfire.harness.scan import flags

FLAGS = st.booleans()
NUMBERS = st.integers(0, 1 << 20)
TEXTS = st.sampled_from(["fp8", "a b", "x'y"])
PARTS = st.dictionaries(st.sampled_from(["mode", "x"]), st.one_of(NUMBERS, st.just({"deep": {"y": [1]}})), min_size=1)
KEYWORDS = st.fixed_dictionaries(
    {},
    optional={
        "enforce_eager": FLAGS,
        "enable_prefix_caching": FLAGS,
        "max_model_len": NUMBERS,
        "tensor_parallel_size": NUMBERS,
        "dtype": TEXTS,
        "hf_overrides": PARTS,
        "compilation_config": PARTS,
    },
)


def words_of(arguments):
    return tuple(word for name, value in arguments.items() for word in command.spelled(name, value))


@given(KEYWORDS, KEYWORDS)
def test_edited_words_are_read_as_the_changed_keywords(before, after):
    edited = command.edited(words_of(before), before, after)
    assert flags.parse(edited).keywords == after


@given(KEYWORDS)
def test_nothing_changed_leaves_every_word(before):
    words = words_of(before)
    assert command.edited(words, before, dict(before)) == words


@pytest.mark.parametrize(
    ("typed", "change", "expected"),
    [
        ("--max-model-len", {"max_model_len": None}, ""),
        ("-tp2 --port 80", {"tensor_parallel_size": 4}, "--port 80 --tensor-parallel-size 4"),
        ("--x.a 1 --x.b=2 --port 80", {"x": None}, "--port 80"),
        ("--max-num-seqs 4 --port 80 --max-num-seqs 8", {"max_num_seqs": 2}, "--port 80 --max-num-seqs 2"),
        ("--no-enable-prefix-caching", {"enable_prefix_caching": True}, "--enable-prefix-caching"),
        ("-O3 --seed 1", {"optimization_level": 0}, "--seed 1 --optimization-level 0"),
    ],
)
def test_every_spelling_of_a_changed_keyword_goes(typed, change, expected):
    words = shlex.split(typed)
    before = flags.parse(words).keywords
    after = {name: value for name, value in {**before, **change}.items() if value is not None}
    assert command.edited(words, before, after) == tuple(shlex.split(expected))


def test_questions_with_the_same_reading_and_other_words_are_different_questions():
    one = Question("m", {"max_model_len": True}, "serve", argv=("--max-model-len",))
    other = Question("m", {"max_model_len": True}, "serve", argv=("--max-model-len=true",))
    assert one.key != other.key
    assert one.replaced({}).argv == ()
