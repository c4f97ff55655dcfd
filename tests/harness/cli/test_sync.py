"""`staticfire sync`: exit codes, both formats, and what it says of bad input."""

import json
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
        (["jamba-tiny"], "Missing option '--engine'"),
        (["--engine", "reference"], "Name a model: staticfire sync MODEL"),
        (["--engine", "reference", "jamba-tiny", "llama-tiny"], "One model at a time; what is 'llama-tiny'?"),
        (["--engine", "reference", "jamba-tiny", "--blok-size", "16"], "did you mean --block-size?"),
        (["--engine", "reference", "jamba-tiny", "--fromat", "json"], "did you mean --format?"),
        (["--engine", "reference", "no-such-model"], "No model 'no-such-model'"),
        (["--engine", "reference", "--engine-python", "python3", "jamba-tiny"], "--engine-python is for --engine vllm"),
        (["--engine", "vllm", "--engine-python", "/no/such/python", "jamba-tiny"], "cannot be started"),
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
