"""`staticfire sync --contract`: exit codes, both formats, and what it says of bad input."""

import json
import os
import signal
import subprocess
import sys
import time

import jsonschema
import psutil
import pytest

import toy_contract
from staticfire.harness.cli import main


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return lambda fault=None: toy_contract.write(tmp_path, fault)


def run(capsys, *args: str) -> tuple[int, str, str]:
    code = main(["sync", "--contract", "--engine", *args])
    return code, *capsys.readouterr()


def test_our_own_response_holds(capsys, repo_root):
    code, out, err = run(capsys, "reference", "--examples", "2", "--format", "json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    jsonschema.validate(document, json.loads((repo_root / "docs/schemas/sync-contract.json").read_text()))
    assert document["holds"]
    assert document["findings"] == []
    assert sum(one["examples"] for one in document["properties"]) > 200


def test_a_counterexample_is_told_in_full(capsys, toy):
    toy("none erases")
    code, out, _ = run(capsys, "vllm", "--engine-python", sys.executable, "--examples", "10")
    assert code == 1
    story = out[out.index("none-after-value: state_tokens") :].splitlines()
    assert story[1:4] == [
        "    engine 0 says state_tokens = 1056",
        "    engine 1 says state_tokens = None",
        "    the front end ends with everything.pages.state_tokens = None; when the None comes first: 1056",
    ]
    assert "erases" in story[4]
    assert out.splitlines()[-1].startswith("Broken: 4 counterexamples, by 7 properties, ")


def test_a_counterexample_is_data_too(capsys, toy, repo_root):
    toy("added again")
    code, out, _ = run(capsys, "vllm", "--examples", "5", "--format", "json", "--accept", "re-delivery:count=never")
    assert code == 0, "it is accepted"
    document = json.loads(out)
    jsonschema.validate(document, json.loads((repo_root / "docs/schemas/sync-contract.json").read_text()))
    (finding,) = document["findings"]
    assert finding["path"] == "vllm/desk.py"
    assert finding["messages"] == [{"engine": 0, "says": {"count": 1056}, "leaves_out": []}] * 2
    assert finding["accepted"] == "never"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["reference", "jamba-tiny"], "takes no model and no flags: jamba-tiny"),
        (["reference", "--tensor-parallel-size", "2"], "takes no model and no flags: --tensor-parallel-size 2"),
        (["reference", "--engine-python", "python"], "--engine-python is for --engine vllm"),
        (["reference", "--examples", "0"], "0 is not in the range"),
        (["reference", "--accept", "re-delivery:block_size"], "a reason is not optional"),
        (["reference", "--accept", "redelivery:x=y"], "no property 'redelivery'. Did you mean 're-delivery'?"),
        (["reference", "--accept", "re-delivery:blok_size=y"], "Did you mean 'block_size'?"),
        (["reference", "--accept", "zzz:x=y"], "there is no property 'zzz'. Properties: round-trip, missing-field"),
        (
            ["vllm", "--engine-python", "/no/such/python"],
            "--engine-python /no/such/python: is no program that can be run",
        ),
        (
            ["vllm", "--engine-python", "no-such-python"],
            "--engine-python no-such-python: is no program that can be run",
        ),
        (["vllm", "--engine-python", "/"], "--engine-python /: is a folder; name the interpreter"),
    ],
)
def test_bad_input_is_one_clear_error(capsys, args, message):
    code, out, err = run(capsys, *args)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("accept", [["x", "zzz:x=y"], ["re-delivery:one=a", "re-delivery:two=b"]])
def test_all_that_cannot_be_accepted_is_said_at_once(capsys, accept):
    code, _, err = run(capsys, "reference", "--accept", accept[0], "--accept", accept[1])
    assert code == 2
    assert err.count("--accept ") == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--accept", "a:b=c"], "--accept is for --contract"),
        (["--examples", "5"], "--examples is for --contract"),
        (["--seconds", "5", "--examples", "50"], "--examples, --seconds are for --contract"),
    ],
)
def test_options_of_the_contract_are_refused_without_it(capsys, tmp_path, args, said):
    assert main(["sync", "--engine", "reference", "jamba-tiny", *args]) == 2
    assert said in capsys.readouterr().err
    assert main(["sync", str(tmp_path), *args]) == 2
    assert "reading source takes a folder and --format only" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["./python", "bin/../python"])
def test_the_interpreter_may_be_named_from_where_the_user_stands(capsys, toy, tmp_path, monkeypatch, named):
    toy()
    (tmp_path / "bin").mkdir()
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "python").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "vllm", "--engine-python", named, "--examples", "1")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1].startswith("Holds")


def test_an_engine_beyond_the_contract_is_said_plainly(capsys, toy):
    toy("refuses")
    code, out, err = run(capsys, "vllm", "--engine-python", sys.executable)
    assert (code, out) == (2, "")
    assert "is beyond this contract" in err


def test_without_hypothesis_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    code, _, err = run(capsys, "reference")
    assert code == 2
    assert "pip install 'staticfire[pytest]'" in err


def program(tmp_path, *args: str) -> "subprocess.Popen[bytes]":
    """The program itself, in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    environment = {**os.environ, "STATICFIRE_CACHE": str(tmp_path / "cache")}
    environment.pop("HYPOTHESIS_STORAGE_DIRECTORY", None)
    command = [sys.executable, "-m", "staticfire", "sync", "--contract", "--engine", *args]
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL)


def test_nothing_is_left_where_the_user_stands(tmp_path):
    assert program(tmp_path, "reference", "--examples", "1").wait(120) == 0
    assert list((tmp_path / "here").iterdir()) == []


def test_killed_it_leaves_no_process_of_the_engine(tmp_path, toy):
    toy("hangs")
    killed = program(tmp_path, "vllm", "--engine-python", sys.executable)
    deadline = time.monotonic() + 60
    theirs: list[psutil.Process] = []
    while len(theirs) < 2 and time.monotonic() < deadline:  # the engine's process, and the one that watches over it
        theirs = psutil.Process(killed.pid).children(recursive=True)
        time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert len(theirs) == 2
    _, alive = psutil.wait_procs(theirs, timeout=20)
    assert alive == []
