"""What an agent makes of a text that was escaped for it is that text, in one pass and in two."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from staticfire.harness.pipeline.escape import escaped, interpolated, unescaped

ENVIRONMENT = {"NAME": "value", "x": "y", "EMPTY": ""}
TEXTS = st.text(st.one_of(st.sampled_from("$${}()\\'\"Nx:- \n"), st.characters()), max_size=40)


@given(TEXTS)
def test_an_escaped_text_comes_out_as_it_was(text):
    assume(not re.search(r"(?<!\\)(?:\\\\)*\\\$", text))
    assert interpolated(escaped(text), ENVIRONMENT) == unescaped(escaped(text)) == text


@given(TEXTS.filter(lambda text: "\\" not in text))
def test_twice_escaped_survives_two_agents(text):
    made = escaped(escaped(text))
    assert interpolated(interpolated(made, ENVIRONMENT), ENVIRONMENT) == text


@given(st.integers(0, 9))
def test_backslashes_before_a_dollar_survive_in_even_numbers_and_are_refused_in_odd_ones(count):
    text = "\\" * count + "$NAME"
    if count % 2:
        with pytest.raises(ValueError, match=rf"column {count + 1}: a backslash"):
            escaped(text)
    else:
        assert interpolated(escaped(text), ENVIRONMENT) == text


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("$NAME and ${NAME}", "value and value"),
        ("$$NAME", "$NAME"),
        (r"\$NAME", "$NAME"),
        (r"\\$NAME", r"\\value"),
        ("$(date) costs $", "$(date) costs $"),
        ("${UNSET:-a$NAME} ${EMPTY:-b}${EMPTY-c}", "avalue b"),
        ("${UNSET}${UNSET-d}", "d"),
    ],
)
def test_the_agent_s_grammar(text, made):
    assert interpolated(text, ENVIRONMENT) == made


@pytest.mark.parametrize("text", ["Don't create remote checkouts for $0 checkouts", "cost $5", "${NAME:?no}", "$\n"])
def test_what_an_agent_cannot_read_is_refused_with_its_column(text):
    with pytest.raises(ValueError, match=rf"column {text.index('$') + 1}: "):
        interpolated(text, ENVIRONMENT)
    assert interpolated(escaped(text), ENVIRONMENT) == text


def test_reading_a_file_keeps_what_an_agent_would_replace():
    assert unescaped(r"$$a $NAME \$b \\$c ${X:?}") == r"$a $NAME $b \\$c ${X:?}"
