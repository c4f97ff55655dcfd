"""NO_COLOR, FORCE_COLOR and TERM=dumb, for every verb that colours."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from staticfire.harness.cli.colour import is_dumb, wanted

ESCAPE = "\x1b["
PROGRAM = str(Path(sys.executable).with_name("staticfire"))


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, None),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "0"}, False),  # present and not empty, whatever its value
        ({"NO_COLOR": ""}, None),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, None),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, True),
        ({"TERM": "xterm-256color"}, None),
    ],
)
def test_the_conventions(environment, expected):
    assert wanted(environment) is expected
    assert is_dumb(environment) == (environment.get("TERM") == "dumb")


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "test_a.py"
    path.write_text('from vllm import LLM\n\nLLM("jamba-tiny-grow", max_num_batched_tokens=-1)\n')
    matrix = tmp_path / "toy.toml"
    matrix.write_text('[matrix]\nname = "toy"\ndescription = "One."\n[axes]\nmodel = ["llama-tiny"]\nseed = [1]\n')
    return tmp_path


VERBS = [["rule", "SF101"], ["rules"], ["explain", "jamba-tiny-grow"], ["check", "test_a.py", "--engine", "reference"]]
RUN = ["run", "toy.toml", "--job", "fake_jobs:by_seed"]


def environment(variables):
    fakes = str(Path(__file__).parents[1] / "run" / "fakes")
    base = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "TERM"}}
    return {**base, "TERM": "xterm", "PYTHONPATH": fakes, "FAKE_DEFAULT": "fail", "FAKE_ACTIONS": "{}", **variables}


@pytest.mark.parametrize("arguments", [*VERBS, RUN], ids=lambda words: words[0])
def test_force_color_colours_a_pipe(suite, arguments):
    forced = {"FORCE_COLOR": "1"}
    for variables, coloured in (({}, False), (forced, True), ({**forced, "NO_COLOR": "1"}, False)):
        done = subprocess.run(
            [PROGRAM, *arguments, *(["--out", f"out-{len(variables)}"] if arguments is RUN else [])],
            cwd=suite,
            env=environment({**variables, "FAKE_LOG": str(suite / "log")}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode < 2, done.stderr
        assert (ESCAPE in done.stdout) is coloured, (variables, done.stdout)


@pytest.mark.parametrize("arguments", [*VERBS, RUN], ids=lambda words: words[0])
@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["plain", "no-color", "dumb"])
def test_a_terminal_is_coloured_unless_somebody_says_no(suite, arguments, variables):
    ours, theirs = pty.openpty()
    told = environment({**variables, "FAKE_LOG": str(suite / "log")})
    with subprocess.Popen(
        [PROGRAM, *arguments], cwd=suite, env=told, stdout=theirs, stderr=theirs, stdin=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # the end of a terminal
                break
            if not data:
                break
            shown += data
        process.wait(60)
    os.close(ours)
    assert process.returncode < 2, shown
    colours = [part for part in shown.split(b"\x1b[")[1:] if part.lstrip(b"0123456789;")[:1] == b"m"]
    assert bool(colours) is (not variables), shown
    if variables.get("TERM") == "dumb":
        assert b"\x1b" not in shown
        assert b"\r" not in shown.replace(b"\r\n", b"")
