"""`staticfire sync`: exit codes, both formats, and what it says of bad input."""

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from staticfire.harness.cli import main
from staticfire.harness.models.make import ensure

LAYOUTS = {
    "in-process": [],
    "separate": ["--enable-multiprocessing"],
}


@pytest.fixture(scope="module")
def folder() -> str:
    return str(ensure("jamba-tiny-grow"))


def schema(repo_root: Path) -> Any:
    return json.loads((repo_root / "docs" / "schemas" / "sync.json").read_text(encoding="utf-8"))


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sound_engine_is_in_step(capsys, repo_root, layout):
    assert main(["sync", "--engine", "reference", "--format", "json", "jamba-tiny-grow", *LAYOUTS[layout]]) == 0
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, schema(repo_root))
    assert document["in_step"]
    assert document["holders"] == [
        "front end",
        "front end on engine 0",
        "engine core 0",
        "worker 0.0",
        "metrics of engine 0",
    ]
    assert document["fields"] >= 40


@pytest.mark.engine
def test_text_names_everyone_and_ends_in_a_verdict(capsys, folder):
    assert main(["sync", "--engine", "reference", folder, "--block-size", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(f"{folder} --block-size 32")
    assert lines[-1].startswith("In step: ")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["jamba-tiny"], "to start an engine, name it: --engine"),
        ([], "name one folder with an engine's source"),
        (["--contract"], "Missing option '--engine'"),
        (["--engine", "reference"], "Name a model: staticfire sync --engine reference MODEL"),
        (["--engine", "reference", "jamba-tiny", "llama-tiny"], "One model at a time; what is 'llama-tiny'?"),
        (["--engine", "reference", "jamba-tiny", "--blok-size", "16"], "did you mean --block-size?"),
        (["--engine", "reference", "jamba-tiny", "--fromat", "json"], "did you mean --format?"),
        (["--engine", "reference", "no-such-model"], "No model 'no-such-model'"),
        (["--engine", "reference", "--engine-python", "python3", "jamba-tiny"], "--engine-python is for --engine vllm"),
        (["--engine", "vllm", "--engine-python", "/no/such/python", "jamba-tiny"], "is no program that can be run"),
    ],
)
@pytest.mark.engine
def test_bad_input_is_one_error(capsys, args, message):
    assert main(["sync", *args]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.engine
def test_a_refused_configuration_is_not_started(capsys):
    args = ["--enable-prefix-caching", "--no-enable-chunked-prefill"]
    assert main(["sync", "--engine", "reference", "jamba-tiny", *args]) == 2
    assert "align-without-chunked-prefill" in capsys.readouterr().err


def test_the_source_of_our_own_engine_has_nothing_to_report(capsys, repo_root):
    assert main(["sync", str(repo_root / "engine")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Everything that is settled after the copy and read elsewhere travels")
    assert "undecided: " in out


def test_findings_in_source_follow_the_schema(capsys, repo_root, tmp_path):
    shutil.copytree(repo_root / "engine", tmp_path / "engine", ignore=shutil.ignore_patterns("__pycache__"))
    response = tmp_path / "engine" / "ready" / "response.py"
    lines = response.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("    mamba_block_size: ")]
    assert len(kept) == len(lines) - 1
    response.write_text("".join(kept), encoding="utf-8")
    assert main(["sync", "--format", "json", str(tmp_path / "engine")]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(
        document, json.loads((repo_root / "docs" / "schemas" / "sync-source.json").read_text(encoding="utf-8"))
    )
    (finding,) = document["findings"]
    assert finding["field"] == "runtime.mamba_block_size"
    assert (finding["process"], finding["carried_by"], finding["applied_at"]) == ("worker", None, None)
    assert finding["read_at"].startswith(str(tmp_path / "engine" / "metrics"))


def test_a_folder_without_an_engine_is_one_error(capsys, tmp_path):
    assert main(["sync", str(tmp_path)]) == 2
    assert "no Python file in it" in capsys.readouterr().err
