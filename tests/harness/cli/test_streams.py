"""Standard streams that are closed, full, or read by nobody: one clear error or none, and the right exit code."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from staticfire.harness.cli import VERBS
from staticfire.harness.cli.streams import OutputError, write_file

FAULTY = "from vllm import LLM\nLLM('jamba-tiny', enable_chunked_prefill=False)\n"
CHECK = "check faulty.py --engine reference"
PRINTS = {
    "check": CHECK,
    "explain": "explain jamba-tiny",
    "matrix": "matrix hybrid",
    "models": "models",
    "rule": "rule SF101",
    "rules": "rules",
}
LINES = {verb: PRINTS.get(verb, f"{verb} --help") for verb in VERBS}
CLOSED = "Error: standard output is closed: there is nowhere to write.\n"
FULL = "Error: standard output cannot be written: No space left on device.\n"


@pytest.fixture
def shell(tmp_path):
    """Run the program by a shell, in a folder with a file that has one fault."""
    (tmp_path / "faulty.py").write_text(FAULTY)
    environment = {**os.environ, "STATICFIRE_CACHE": str(tmp_path / "cache")}

    def run(line):
        return subprocess.run(
            ["bash", "-c", f"{sys.executable} -m staticfire {line}"],
            capture_output=True, text=True, check=False, cwd=tmp_path, env=environment, timeout=60,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("line", [*LINES.values(), "--help", "--version", "check --help"])
def test_standard_output_that_cannot_be_written_is_one_clear_error(shell, line):
    for redirection, said in ((">&-", CLOSED), (">/dev/full", FULL)):
        done = shell(f"{line} {redirection}")
        assert (done.returncode, done.stderr) == (2, said)


def test_a_closed_standard_output_stops_no_report_that_goes_to_a_file(shell, tmp_path):
    done = shell(f"{CHECK} --output report >&-")
    assert (done.returncode, done.stderr) == (2, CLOSED)
    assert "chunked prefill" in (tmp_path / "report").read_text()


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "<&-", "<&- 2>&-"])
@pytest.mark.parametrize(("line", "code"), [(CHECK, 1), (f"{CHECK} --format json", 1), ("nosuch", 2), ("rules", 0)])
def test_nothing_that_happens_to_standard_error_changes_the_exit_code(shell, redirection, line, code):
    done = shell(f"{line} {redirection}")
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reader_that_goes_away_does_not_change_what_was_found(shell, form):
    done = shell(f"{CHECK} --format {form} | head -c 1; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 1
    assert done.stdout in {"c", "{"}
    assert "roken" not in done.stderr


def test_a_file_that_is_opened_never_becomes_the_standard_output_of_a_child(shell, tmp_path):
    # With descriptors 1 and 2 free, the next two files that are opened would take them.
    probe = (
        "import os, subprocess, sys; from staticfire.harness.cli.streams import standard_streams\n"
        "with standard_streams(), open('mine', 'w') as mine:\n"
        "    subprocess.run(['bash', '-c', 'echo hello; echo hello >&2'])\n"
    )
    (tmp_path / "probe.py").write_text(probe)
    subprocess.run(["bash", "-c", f"{sys.executable} probe.py <&- >&- 2>&-"], cwd=tmp_path, check=True)
    assert (tmp_path / "mine").read_text() == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--output /dev/full", "--output /dev/full: No space left on device."),
        ("--output nodir/report", "--output nodir/report: the folder nodir is not there."),
        ("--baseline nodir/b.json --update-baseline", "--baseline nodir/b.json: the folder nodir is not there."),
    ],
)
def test_a_file_that_cannot_be_written_is_named_with_its_option(shell, options, said):
    done = shell(f"{CHECK} {options}")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"Error: {said}\n")


def test_a_file_is_written_whole_or_as_it_was(tmp_path, monkeypatch):
    file = tmp_path / "report"
    file.write_text("before")
    (tmp_path / "link").symlink_to(file)
    write_file(tmp_path / "link", "after \ud800", "--output")
    assert file.read_text() == "after \\ud800"
    assert (tmp_path / "link").is_symlink()

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match="No space left"):
        write_file(file, "more", "--output")
    assert file.read_text() == "after \\ud800"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "report"]
