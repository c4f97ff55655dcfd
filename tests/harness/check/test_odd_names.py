"""Names of files that are not UTF-8, literals that are no Unicode: every format says them and stays well-formed."""

import json
import os
from pathlib import Path
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree as ET

import pytest

from staticfire.harness.cli import main

REFUSED = """from vllm import LLM
def test_a():
    LLM("jamba-tiny", enable_chunked_prefill=False, mamba_cache_mode="align")
def test_b():
    LLM("\\ud800", tokenizer="\\x00\\ufffe\\udfff", seed=3)
def test_c():
    LLM("jamba-tiny", block_size="\\ud800")
"""
NAMES = (b"test_\xff\x1b.py", b"test_\xed\xa0\x80.py", "test_é.py".encode())
SHOWN = {r"test_\udcff\x1b.py", r"test_\udced\udca0\udc80.py", "test_é.py"}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, full of such names."""
    folder = tmp_path / "suite"
    folder.mkdir()
    for name in NAMES:
        (folder / os.fsdecode(name)).write_text(REFUSED)
    (folder / os.fsdecode(b"\xfe.sh")).write_bytes(b"vllm serve jamba-tiny --block-size x --tokenizer \xff\n")
    (folder / os.fsdecode(b"cut\xff.py")).write_text("LLM(")
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(folder)
    return folder


def run(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What a check of the current folder prints, cold and warm alike."""
    made = []
    for _ in range(2):
        assert main(["check", ".", "--engine", "reference", *options]) == 1
        made.append(capsys.readouterr().out)
    assert made[0] == made[1]
    made[0].encode()
    return made[0]


def texts(value: object) -> list[str]:
    """Every text in a document, keys included."""
    match value:
        case str():
            return [value]
        case dict():
            return [text for pair in value.items() for one in pair for text in texts(one)]
        case list():
            return [text for one in value for text in texts(one)]
    return []


@pytest.mark.parametrize("name", ["text", "github", "buildkite"])
def test_texts_hold_no_control_character_and_are_unicode(
    name: str, suite: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = run(capsys, "--format", name)
    assert "\x1b" not in made
    assert "udcff" in made


@pytest.mark.parametrize("name", ["json", "sarif"])
def test_documents_are_unicode(name: str, suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in texts(json.loads(run(capsys, "--format", name))):
        text.encode()


def test_json_names_every_file_apart(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "--format", "json"))
    paths = {place["path"] for finding in document["findings"] for place in finding["sites"]}
    assert {path.replace("\x1b", r"\x1b") for path in paths if path.endswith(".py")} == SHOWN


def test_sarif_leads_to_the_very_file(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(run(capsys, "--format", "sarif"))
    results = document["runs"][0]["results"]
    uris = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    assert {unquote_to_bytes(uri) for uri in uris} == {*NAMES, b"\xfe.sh"}


def test_junit_is_xml(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = ET.fromstring(run(capsys, "--format", "junit"))
    assert len(root.findall(".//failure")) == 7


def test_a_baseline_is_written_and_holds(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = suite.parent / "known.json"
    arguments = ["check", ".", "--engine", "reference", "--baseline", str(file)]
    assert main([*arguments, "--update-baseline"]) == 0
    assert main(arguments) == 0
    json.loads(file.read_bytes())


@pytest.mark.timeout(60)
def test_a_pipe_that_is_named_is_a_usage_error(suite: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(suite / "pipe.py")
    assert main(["check", "pipe.py", "--engine", "reference"]) == 2
    assert "pipe.py is a named pipe" in capsys.readouterr().err
