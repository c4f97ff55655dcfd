"""A toy engine behind an interpreter of its own, and the probe that asks it."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from staticfire.harness.models import devices
from staticfire.harness.probe.cache import AnswerCache
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.probe.vllm.process import Limits

TOY = Path(__file__).resolve().parents[3] / "support" / "toy_vllm"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """An interpreter that has the toy engine, as a script; returns its path."""
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    shutil.copytree(TOY, tree, ignore=shutil.ignore_patterns("__pycache__"))
    metadata = tree / "vllm-9.9.9.dist-info" / "METADATA"
    metadata.parent.mkdir()
    # What follows the empty line is a description, and requires nothing.
    metadata.write_text("Requires-Dist: nvidia-absent-kernels==1.0\n\nRequires-Dist: absent_optional_kernels\n")
    # A compiled module for another machine: there, but no loader can read it.
    (tree / "vllm" / "_C_compiled.abi3.so").write_bytes(b"not an ELF file")
    script = tmp_path / "python-toy"
    script.write_text(f'#!/bin/sh\nPYTHONPATH={tree} exec {sys.executable} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture
def model(tmp_path):
    """Make a folder with a config.json that names an architecture, and more where more is given."""

    def make(architecture="PlainForCausalLM", **keys):
        text = json.dumps({"architectures": [architecture], **keys}, sort_keys=True)
        folder = tmp_path / "models" / f"{architecture}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(text)
        return str(folder)

    return make


@pytest.fixture
def probe(toy, tmp_path):
    """Open a probe of the toy engine; all are closed, and nothing may be left of them."""
    opened = []

    def make(**options):
        options.setdefault("limits", Limits(start=60, question=20))
        options.setdefault("answers", AnswerCache(tmp_path / "answers.sqlite"))
        opened.append(VllmProbe(str(toy), devices.find(options.pop("device", "h100-80gb")), **options))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
