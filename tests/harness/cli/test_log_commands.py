"""What an engine or a report says never reaches the log of a CI job as a command of it."""

import re
import textwrap

import pytest

from staticfire.harness.cli import main
from staticfire.harness.report.terminal import finding_text
from staticfire.harness.run.result import CellResult

FOREIGN = "first\n::error file=x::gotcha\n##[set-env name=PATH]evil\n--- group\n\x1b]0;title\x07"


def harmless(text: str) -> None:
    bare = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not re.search(r"^\s*(?:::|--- |\+\+\+ )|##\w*\[|\x1b|\x07", bare, re.MULTILINE), text


def test_a_finding_of_a_run():
    result = CellResult(id="a", axes={}, verdict="failed", seconds=1, detail={"error": FOREIGN, "output": FOREIGN})
    harmless(finding_text(result, "staticfire run x --cell a").plain)


@pytest.mark.parametrize("options", [[], ["--format", "json"]])
def test_the_triage_of_a_report(tmp_path, capsys, options):
    log = tmp_path / "build.log"
    log.write_text(f"FAILED t.py::test_x - ValueError: {FOREIGN}\nE   ValueError: ::error::x ##[error]y\n")
    assert main(["triage", str(log), *options]) == 1
    harmless(capsys.readouterr().out)


def test_the_text_of_a_check(tmp_path, capsys):
    suite = tmp_path / "test_a.py"
    suite.write_text(
        textwrap.dedent(
            """
            from vllm import LLM

            LLM("jamba-tiny-grow", load_format="x\\n::error::gotcha\\n##[error]y", quantization="::error::\\n--- a")
            """
        )
    )
    assert main(["check", str(suite), "--no-cache", "--engine", "reference"]) == 1
    out, err = capsys.readouterr()
    assert "gotcha" in out
    harmless(out)
    harmless(err)


def test_an_error(tmp_path, capsys):
    assert main(["check", str(tmp_path / "no\n::error::such")]) == 2
    assert main(["run", "no\n::error::such"]) == 2
    assert main(["explain", "no\n::error::such"]) == 2
    harmless(capsys.readouterr().err)
