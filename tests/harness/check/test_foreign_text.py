"""Text of a scanned file makes the engine load and write nothing; coverage says what it was asked without."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from staticfire.harness.cli import main

TOY = Path(__file__).resolve().parents[2] / "support" / "toy_vllm"

SUITE = """
import os

from vllm import EngineArgs

os.environ["VLLM_CACHE_ROOT"] = "{folder}"
os.environ["VLLM_USE_V2_MODEL_RUNNER"] = "1"
EngineArgs(model="org/plain", block_size={size}, act="schedule", scheduler_cls="evil.Scheduler")
"""
YAML = """
services:
  engine:
    environment:
      VLLM_CACHE_ROOT: {folder}
      VLLM_PLUGINS: evil
      VLLM_API_KEY: hunter2
    command: ["vllm", "serve", "org/plain", "--act", "note", "--named", "{folder}"]
"""


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Check a file against a toy engine in whose environment a module `evil` leaves a mark."""
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    shutil.copytree(TOY, tree, ignore=shutil.ignore_patterns("__pycache__"))
    (tree / "evil.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w').close()\n")
    python = tmp_path / "python-toy"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tree} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    configs = tmp_path / "configs" / "org" / "plain"
    configs.mkdir(parents=True)
    (configs / "config.json").write_text(json.dumps({"architectures": ["PlainForCausalLM"]}))

    def run(name, text, expected=(0, 1)):
        path = tmp_path / "suite" / name
        path.parent.mkdir()
        path.write_text(text)
        options = ["--engine", "vllm", "--engine-python", str(python), "--model-configs", str(tmp_path / "configs")]
        code = main(["check", str(path), *options, "--format", "json", "--no-cache"])
        out, err = capsys.readouterr()
        assert code in expected, err
        return json.loads(out)

    return run


def test_a_class_that_is_named_is_not_imported_and_what_is_left_is_judged(check, tmp_path):
    report = check("test_a.py", SUITE.format(folder=tmp_path / "folder", size=12))
    assert not (tmp_path / "marker").exists()
    (finding,) = report["findings"]
    assert "block_size 12 must be a multiple of 8" in finding["message"]
    assert finding["certainty"] == "possible"
    assert "scheduler_cls names code, which is not loaded" in json.dumps(finding)
    assert report["coverage"]["by_reason"] == {
        "without the variable VLLM_CACHE_ROOT: it names a folder or a file": 1,
        "judged, but scheduler_cls names code, which is not loaded; the engine was asked without it": 1,
    }


def test_without_it_the_same_finding_is_certain(check, tmp_path):
    text = SUITE.format(folder=tmp_path / "folder", size=12).replace(', scheduler_cls="evil.Scheduler"', "")
    (finding,) = check("test_a.py", text)["findings"]
    assert finding["certainty"] == "certain"


def test_a_folder_that_yaml_names_is_not_written_and_what_it_sets_is_told(check, tmp_path):
    folder = tmp_path / "folder"
    coverage = check("compose.yaml", YAML.format(folder=folder), (2,))["coverage"]
    assert not folder.exists()
    assert not (tmp_path / "marker").exists()
    assert (coverage["sites"], coverage["judged"]) == (1, 0)  # this engine has no server
    assert coverage["by_reason"]["without the variable VLLM_CACHE_ROOT: it names a folder or a file"] == 1
    assert coverage["by_reason"]["without the variable VLLM_PLUGINS: it chooses code to load"] == 1
    assert coverage["by_reason"]["without the variable VLLM_API_KEY: it is a secret"] == 1
