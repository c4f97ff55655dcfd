"""No verb runs code of the folder that it is called in, or of one that it reads."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hostile_folder
import toy_contract
from hostile_folder import HostileFolder
from staticfire.harness.cli import VERBS

SUPPORT = Path(__file__).resolve().parents[2] / "support"

MATRIX = """
[matrix]
name = "one"
description = "One cell."

[axes]
model = ["jamba-tiny-grow"]
seed = [1]
"""
REPORT = """<testsuite name="s" tests="1"><testcase classname="tests.test_a" name="test_b" file="tests/test_a.py">
<failure message="ValueError: chunked prefill">csv.Error: here</failure></testcase></testsuite>"""
PIPELINE = """
[pipeline]
name = "toy"

[[check]]
key = "lint"
command = "true"
"""

QUICK: dict[str, list[list[str]]] = {
    "annotate": [["{report}"]],
    "check": [
        [".", "--engine", "reference", "--jobs", "2", "--no-cache"],
        ["{hostile}", "--engine", "reference", "--jobs", "2", "--no-cache"],
        ["{hostile}", "--engine", "vllm", "--engine-python", "{toy}", "--no-cache"],
        ["{hostile}/suite_1.py", "--engine", "vllm", "--engine-python", "{toy}", "--engine-source", "{tree}"],
    ],
    "explain": [["jamba-tiny-grow", "--max-model-len", "64"]],
    "kernels": [["--roofline", "h100-80gb", "--op", "fused_moe", "--shape", "tokens=16"]],
    "matrix": [["{matrix}"]],
    "models": [["list"], ["path", "jamba-tiny-grow"]],
    "pipeline": [["{matrix}", "."], ["{pipeline}", "--local"], ["{pipeline}", "--base", "HEAD"]],
    "rule": [["SF101"]],
    "rules": [[], ["--against", "vllm", "--engine-python", "{toy}", "--examples", "1"]],
    "run": [["{matrix}", "--job", "fake_jobs:by_seed", "--out", "{out}"]],
    "start": [["no-such-model"]],
    "sync": [
        ["{hostile}"],
        ["--engine", "vllm", "--contract", "--engine-python", "{contract}", "--examples", "1"],
        ["--engine", "vllm", "--engine-python", "{served}", "{model}"],
    ],
    "triage": [["{report}", "--source", "{hostile}", "--engine", "vllm", "--engine-python", "{toy}"]],
}
"""Verb -> what it is called with, in seconds."""

SLOW: dict[str, list[list[str]]] = {
    "kernels": [["--op", "silu_and_mul", "--target", "sm_90", "--cache", "{out}"]],
    "models": [["make", "jamba-tiny-grow", "--cache", "{out}/models"]],
    "run": [["{matrix}", "--out", "{out}"]],
    "sync": [
        ["--engine", "reference", "--contract", "--examples", "1"],
        ["--engine", "reference", "jamba-tiny-grow", "--tensor-parallel-size", "2"],
    ],
}
"""What imports torch."""


@pytest.fixture
def hostile(tmp_path):
    return HostileFolder(tmp_path)


@pytest.fixture
def words(hostile, tmp_path):
    """What the words in braces stand for; nothing of it lies in the hostile folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    for name, text in {"report.xml": REPORT, "one.toml": MATRIX, "pipeline.toml": PIPELINE}.items():
        (outside / name).write_text(text)
    (outside / "config.json").write_text(json.dumps({"model_type": "jamba"}))
    contract = outside / "contract"
    contract.mkdir()
    toy_contract.write(contract, None)
    trees = {"toy": SUPPORT / "toy_vllm", "served": SUPPORT / "toy_served_vllm", "contract": contract}
    for name, tree in trees.items():
        script = outside / f"python-{name}"
        script.write_text(f'#!/bin/sh\nPYTHONPATH={tree} exec {sys.executable} "$@"\n')
        script.chmod(0o755)
    return {
        **{name: outside / f"python-{name}" for name in trees},
        "hostile": hostile.path,
        "report": outside / "report.xml",
        "matrix": outside / "one.toml",
        "pipeline": outside / "pipeline.toml",
        "model": outside,
        "tree": trees["toy"],
        "out": outside / "out",
    }


def call(words, verb, arguments, folder):
    filled = [argument.format_map(words) for argument in arguments]
    cache = {} if verb in {"kernels", "run", "start", "sync"} else {"STATICFIRE_CACHE": str(words["model"] / "cache")}
    fakes = str(SUPPORT.parent / "harness" / "run" / "fakes")
    return hostile_folder.run([hostile_folder.program(), verb, *filled], folder, PYTHONPATH=fakes, **cache)


def test_the_folder_tells_when_a_module_of_it_is_imported(hostile):
    """The control: what Python does by itself in such a folder."""
    hostile_folder.run([sys.executable, "-c", "import csv"], hostile.path)
    assert hostile.imported() == ["csv"]
    assert len(hostile_folder.NAMES) >= 60


def test_every_verb_is_called_here():
    assert set(QUICK) == set(VERBS)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["path", "below"])
@pytest.mark.parametrize("verb", sorted(QUICK))
def test_a_verb_imports_nothing_of_the_folder_it_is_called_in(hostile, words, verb, place):
    for arguments in QUICK[verb]:
        done = call(words, verb, arguments, getattr(hostile, place))
        assert hostile.imported() == [], (arguments, done.stdout, done.stderr)
        assert done.returncode != 3, (arguments, done.stderr)
        assert "imported " not in done.stdout + done.stderr, arguments


@pytest.mark.slow
@pytest.mark.engine
@pytest.mark.parametrize("place", ["path", "below"])
@pytest.mark.parametrize("verb", sorted(SLOW))
def test_a_verb_that_needs_torch_imports_nothing_of_it_either(hostile, words, verb, place):
    for arguments in SLOW[verb]:
        done = call(words, verb, arguments, getattr(hostile, place))
        assert hostile.imported() == [], (arguments, done.stdout, done.stderr)
        assert done.returncode in {0, 1}, (arguments, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.engine
def test_engines_that_serve_import_nothing_of_it(hostile):
    command = [hostile_folder.program(), "start", "jamba-tiny-grow", "--metrics-port", "0", "--json"]
    process = subprocess.Popen(
        [*command, "--data-parallel-size", "2"],
        cwd=hostile.path,
        env=hostile_folder.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert first.startswith("{"), said
    assert hostile.imported() == []


@pytest.mark.slow
def test_started_as_a_module_it_leaves_the_folder_as_soon_as_python_lets_it(hostile, words):
    """What Python itself imports before our first line is beyond us; all that we import comes from elsewhere."""
    early = hostile_folder.run(
        [sys.executable, "-X", "importtime", "-m", "staticfire.__main__", "--help"], Path("/")
    ).stderr
    before = early[: early.index("staticfire.harness")]
    taken = {line.rpartition("|")[2].strip().partition(".")[0] for line in before.splitlines()}
    for name in taken & set(hostile_folder.NAMES):
        (hostile.path / f"{name}.py").unlink()
    (hostile.path / "staticfire.py").unlink(missing_ok=True)
    left = [name for name in hostile_folder.NAMES if (hostile.path / f"{name}.py").exists()]
    assert len(left) >= 60
    for verb in ("check", "explain", "rules"):
        for arguments in QUICK[verb]:
            filled = [argument.format_map(words) for argument in arguments]
            done = hostile_folder.run([sys.executable, "-m", "staticfire", verb, *filled], hostile.path)
            assert hostile.imported() == [], (verb, done.stderr)


def test_no_path_of_python_that_depends_on_the_folder_reaches_another_interpreter(hostile, words):
    """A relative entry of the user's PYTHONPATH means the folder too, for another interpreter."""
    program = hostile_folder.program()
    probed = ["{hostile}/suite_1.py", "--engine", "vllm", "--engine-python", "{toy}", "--no-cache"]
    told = {"PYTHONPATH": f".{os.pathsep}", "PYTHONSTARTUP": "csv.py", "PYTHONWARNINGS": "error::csv.Error"}
    script = words["toy"].with_name("python-plain")
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
    filled = [argument.format_map({**words, "toy": script}) for argument in probed]
    # our own interpreter reads these before any code of ours; it is kept from them, the other one is not
    boot = f"import os, sys; os.environ.update({told!r}); sys.argv[1:] = {['check', *filled]!r}; "
    boot += "from staticfire.harness.cli import main; sys.exit(main())"
    done = hostile_folder.run([sys.executable, "-P", "-c", boot], hostile.path)
    assert hostile.imported() == [], done.stderr
    assert re.search(r"has no vLLM", done.stderr), (program, done.stderr)
