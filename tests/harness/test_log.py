"""Text of others in a log: no line of it is a command of GitHub, Azure or Buildkite, or of a terminal."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.log import safe, safe_json


def is_command(line: str) -> bool:
    """As the systems read a line: GitHub's runner trims it and finds `##[` anywhere; a group of Buildkite begins it."""
    bare = re.sub(r"\x1b\[[0-9;]*m", "", line)
    return (
        bare.lstrip().startswith("::")
        or re.search(r"##\w*\[", bare) is not None
        or re.match(r"\s*(?:---|\+\+\+|~~~|\^\^\^)(?:\s|$)", bare) is not None
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::gotcha", "\\::error::gotcha"),
        ("   ::set-output name=x::y", "   \\::set-output name=x::y"),
        ("fine\n\t::stop-commands::t", "fine\n\t\\::stop-commands::t"),
        ("a\r::error::x", "a\\r::error::x"),
        ("\x1b[31m::error::x\x1b[0m", "\x1b[31m\\::error::x\x1b[0m"),
        ("x ##[error]y", "x #\\#[error]y"),
        ("#\x1b[1m#\x1b[1m[error]y", "#\\\x1b[1m#\x1b[1m[error]y"),
        (":\x1b[1m:error::x", "\\:\x1b[1m:error::x"),
        ("-\x1b[1m-- x", "\\-\x1b[1m-- x"),
        ("\u2003::error::x", "\u2003\\::error::x"),
        ("##vso[task.setvariable variable=a]b", "#\\#vso[task.setvariable variable=a]b"),
        ("--- group", "\\--- group"),
        ("+++ open", "\\+++ open"),
        ("^^^ +++", "\\^^^ +++"),
        ("~~~ muted", "\\~~~ muted"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x1b[2J\x1b[1mbold\x1b[0m", "\\x1b[2J\x1b[1mbold\x1b[0m"),
        ("\x9b2J", "\\x9b2J"),
        ("std::vector<int> ---x", "std::vector<int> ---x"),
        ("  --> tests/a.py:1:2", "  --> tests/a.py:1:2"),
        ("# heading [x]", "# heading [x]"),
    ],
)
def test_what_would_be_a_command_is_shown_and_not_obeyed(text, shown):
    assert safe(text) == shown


_pieces = st.sampled_from(["::", "##", "[", "#", "---", "+++", "~~~", "^^^", " ", "\n", "\r", "\x1b", "\x1b[1m", "a"])


@given(st.lists(_pieces).map("".join) | st.text())
def test_no_line_of_a_safe_text_is_a_command_and_safe_text_stays(text):
    made = safe(text)
    assert not any(map(is_command, made.split("\n")))
    assert not re.search(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]", made)
    assert safe(made) == made


_json = st.recursive(st.text() | st.lists(_pieces).map("".join), st.lists)


@given(_json)
def test_a_json_text_says_the_same_without_a_command(value):
    text = safe_json(json.dumps(value, indent=2))
    assert json.loads(text) == value
    assert not any(map(is_command, text.split("\n")))
