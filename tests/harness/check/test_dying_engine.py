"""A check whose engine hangs, dies or leaves over a question: the run goes on, says so, and leaves nothing behind."""

import json
import shutil
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from staticfire.harness.check import vllm_engine
from staticfire.harness.cli import main
from staticfire.harness.probe import registry

TOY = Path(__file__).resolve().parents[2] / "support" / "toy_vllm"
SUITE = """
from vllm import EngineArgs

def test_each():
{calls}
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(vllm_engine, "Options", partial(registry.Options, question_limit=2))
    shutil.copytree(TOY, tmp_path / "tree", ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "python-toy"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path / "tree"} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    model = tmp_path / "models" / "toys" / "plain"
    model.mkdir(parents=True)
    (model / "config.json").write_text(json.dumps({"architectures": ["PlainForCausalLM"]}))
    return script


@pytest.mark.slow
@pytest.mark.parametrize("act", ["hang", "die", "leave"])
def test_what_becomes_of_a_question_that_the_engine_does_not_survive(toy, tmp_path, capfd, act):
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    calls = [f"    EngineArgs('toys/plain', act={name!r})" for name in ("refuse", act, "")]
    suite = tmp_path / "suite" / "test_a.py"
    suite.parent.mkdir()
    suite.write_text(SUITE.format(calls="\n".join(calls)))
    options = ["--engine", "vllm", "--engine-python", str(toy), "--model-configs", str(tmp_path / "models")]
    code = main(["check", str(suite), *options, "--format", "json", "-j", "1"])
    told = capfd.readouterr()
    assert told.out, told.err
    report = json.loads(told.out)
    assert code == 1, told.err
    assert [(one["message"], len(one["sites"])) for one in report["findings"]] == [("Chunked prefill is required.", 1)]
    assert report["coverage"]["judged"] == 2
    assert any("gave no answer" in reason for reason in report["coverage"]["by_reason"])
    assert told.err.splitlines()[-1] == "1 finding; 2 of 3 sites judged"
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert [child for child in left if child.status() != psutil.STATUS_ZOMBIE] == []
