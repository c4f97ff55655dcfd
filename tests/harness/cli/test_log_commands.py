"""What an engine or a report says never reaches the log of a CI job as a command of it."""

import json
import re
import textwrap
from xml.etree import ElementTree as ET

import click
import pytest

from staticfire.harness.cli import main
from staticfire.harness.cli.pipeline import _commands_off
from staticfire.harness.log import safe_json, safe_xml
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


LOADED = """
from vllm import LLM

LLM("jamba-tiny-grow", load_format="x\\n::error::gotcha\\n##[error]y", quantization="::error::\\n--- a")
"""


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "buildkite", "github"])
def test_every_format_of_a_check(form, tmp_path, capsys):
    (tmp_path / "test_a.py").write_text(LOADED)
    assert main(["check", str(tmp_path), "--no-cache", "--engine", "reference", "--format", form]) == 1
    out = capsys.readouterr().out
    assert "gotcha" in out or form == "buildkite"  # which shows the beginning of a message
    own = r"^::(?:error|warning|notice) (?:file=|title=)" if form == "github" else "(?!)"
    harmless(re.sub(own, "", out, flags=re.MULTILINE))


def test_xml_and_json_say_the_same():
    text = "<a>::error::x\n ##[set]y ##vso[z]\n--- g\n</a>"
    harmless(safe_xml(text))
    harmless(safe_xml("\n::a"))
    assert ET.fromstring(safe_xml(text)).text == ET.fromstring(text).text
    assert json.loads(safe_json('"##[a]"')) == "##[a]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["matrix", "a", "b\n::error::x"],
        ["no\n::error::x"],
        ["check", "--format", "\n##[error]x", "."],
        ["explain", "a", "--no\n::error::x"],
    ],
)
def test_a_mistake_of_usage(arguments, capsys):
    assert main(arguments) == 2
    harmless(capsys.readouterr().err)


def test_what_jobs_print_is_no_command_of_a_workflow(capsys):
    with _commands_off({"GITHUB_ACTIONS": "true"}):
        click.echo("::error::of a job")
    stop, _, again = capsys.readouterr().out.splitlines()
    found = re.fullmatch(r"::stop-commands::(\w{32})", stop)
    assert found is not None
    assert again == f"::{found[1]}::"
    with _commands_off({}):
        pass
    assert capsys.readouterr().out == ""


def test_an_error(tmp_path, capsys):
    assert main(["check", str(tmp_path / "no\n::error::such")]) == 2
    assert main(["run", "no\n::error::such"]) == 2
    assert main(["explain", "no\n::error::such"]) == 2
    harmless(capsys.readouterr().err)
