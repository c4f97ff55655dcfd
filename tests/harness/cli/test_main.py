"""The command itself: verbs, exit codes, and one handler for every error."""

import subprocess
import sys

import click
import pytest

from staticfire import __version__
from staticfire.engine.errors import EngineError
from staticfire.harness import cli
from staticfire.harness.cli import VERBS, main


@pytest.fixture
def failing(monkeypatch):
    """Make the verb `rules` raise."""

    def arrange(error):
        @click.command("rules")
        def command():
            raise error

        monkeypatch.setattr(cli, "rules_for_test", command, raising=False)
        monkeypatch.setitem(VERBS, "rules", ("staticfire.harness.cli:rules_for_test", "Raises."))

    return arrange


def test_help_lists_every_verb_without_importing_one(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for verb, (_, text) in VERBS.items():
        assert verb in out
        assert text in out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys, verb):
    assert main([verb, "--help"]) == 0
    assert f"staticfire {verb}" in capsys.readouterr().out


def test_an_unknown_verb_names_the_nearest(capsys):
    assert main(["explian"]) == 2
    assert "Did you mean 'explain'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (EngineError("the checkpoint is broken"), 2, "Error: the checkpoint is broken"),
        (FileNotFoundError(2, "No such file", "x.toml"), 2, "x.toml"),
        (click.UsageError("no such option"), 2, "no such option"),
        (KeyboardInterrupt(), 130, "Interrupted"),
        (SystemExit(1), 1, ""),
        (SystemExit(), 0, ""),
        (ZeroDivisionError("division by zero"), 3, "a bug of Staticfire, not of your input: ZeroDivisionError"),
    ],
    ids=lambda item: type(item).__name__ if isinstance(item, BaseException) else None,
)
def test_exit_codes(failing, capsys, error, code, message):
    failing(error)
    assert main(["rules"]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback (most recent" not in captured.err


def test_debug_shows_the_traceback(failing, capsys):
    failing(ZeroDivisionError("division by zero"))
    assert main(["--debug", "rules"]) == 3
    assert "Traceback (most recent" in capsys.readouterr().err


def test_a_closed_pipe_ends_quietly():
    pipe = f"{sys.executable} -m staticfire rules | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", pipe], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.startswith("SF101")
