"""Whatever a matrix file holds, it is read or refused with lines and keys; nothing else escapes."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.harness.errors import InputError
from staticfire.harness.matrix.matrix import parse

from .toy import HEAD, ToyProbe

BODY = """
[fixed]
d = 5
[axes]
model = ["jamba-tiny", "llama-tiny"]
a = [1, 2, 3]
b = ["x", "unset"]
c = [true, false]
[[submodel]]
axes = ["model", "a", "b"]
strength = 3
[[constraint]]
when = { a = { not = [1, 2] }, c = true }
reason = "r"
kind = "unsupported"
rule = "R1"
[[constraint]]
when = { model = "llama-tiny", b = "x" }
reason = "s"
kind = "broken"
issue = "#7"
[[seed]]
a = 2
[cover]
strength = 2
seed = 3
"""
LINES = (HEAD + BODY).splitlines()
PIECES = [
    "",
    "x",
    "[",
    "]",
    "{",
    "}",
    "=",
    '"',
    "'",
    "1",
    "true",
    "-1",
    "0.5",
    "[]",
    "{}",
    "[[",
    "]]",
    ".",
    ",",
    "#",
    "\n",
    '"""',
    "nan",
    "1979-05-27",
]


def read(text):
    return parse(text, "toy.toml", ToyProbe(R1=lambda c: False))


@st.composite
def damaged(draw):
    """The text above with a few lines dropped, doubled, swapped, or with a piece of them replaced."""
    lines = list(LINES)
    for _ in range(draw(st.integers(1, 4))):
        i = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "replace", "insert"])):
            case "drop" if len(lines) > 1:
                del lines[i]
            case "double":
                lines.insert(i, lines[i])
            case "swap":
                j = draw(st.integers(0, len(lines) - 1))
                lines[i], lines[j] = lines[j], lines[i]
            case "replace":
                words = re.split(r"(\W)", lines[i])
                words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(PIECES))
                lines[i] = "".join(words)
            case _:
                at = draw(st.integers(0, len(lines[i])))
                lines[i] = lines[i][:at] + draw(st.sampled_from(PIECES)) + lines[i][at:]
    return "\n".join(lines)


def test_the_text_itself_is_sound():
    assert read("\n".join(LINES)).cells()


@given(damaged())
@settings(max_examples=300)
def test_damage_is_read_or_refused_with_a_line(text):
    try:
        matrix = read(text)
    except InputError as error:
        for line in str(error).split("\n"):
            place = re.match(r"toy\.toml:(\d+): \S|toy\.toml: not TOML: ", line)
            assert place, line
            assert place[1] is None or 1 <= int(place[1]) <= len(text.splitlines())
    else:
        assert matrix.cells()
        assert matrix.digest


@given(st.text(max_size=60))
def test_any_text_at_all(text):
    try:
        read(text)
    except InputError:
        return
    raise AssertionError("no text without [matrix] and [axes] is a matrix")
