"""What an interpreter is taken for: each that is none is told in one line, soon; sources stand in for what it has."""

import os
import sys
import time
from pathlib import Path

import pytest

from probe_support import wait_for
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe.base import Accepted, Question
from staticfire.harness.probe.vllm import look
from staticfire.harness.probe.vllm.identity import find
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.probe.vllm.process import EngineProcess


def test_a_relative_interpreter_is_found_from_the_engines_own_folder(toy, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    probe = VllmProbe(f".{os.sep}{toy.name}", devices.find("h100-80gb"), use_cache=False)
    try:
        assert probe.installed.python == str(toy)
        assert isinstance(probe.ask(Question(model())), Accepted)
    finally:
        probe.close()


@pytest.fixture
def interpreter(tmp_path):
    """Write a program that is taken for an interpreter."""

    def make(body, mode=0o755, first="#!/bin/sh\n"):
        path = tmp_path / "python-odd"
        path.write_text(f"{first}{body}\n")
        path.chmod(mode)
        return str(path)

    return make


def fault(python, **options):
    with pytest.raises(InputError) as caught:
        find(python, **options)
    text = str(caught.value)
    assert text.startswith(f"--engine-python {python}: ")
    assert "import" not in text, "our own script is nobody's business"
    assert "\n" not in text
    return text.partition(": ")[2]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo hello there", "is no Python interpreter: it printed 'hello there'"),
        ("echo '[1]'", "is no Python interpreter: it printed '[1]'"),
        ("echo oh dear >&2; exit 7", "is no Python interpreter: it ended with status 7: oh dear"),
        ("kill -9 $$", "is no Python interpreter: it ended with signal 9"),
        ("", "is no Python interpreter: it ended with status 0"),
        ("yes", "prints without an end"),
        (f'exec {sys.executable} -S -E "$@"', "has no vLLM"),
    ],
)
def test_a_program_that_is_no_interpreter_of_an_engine(interpreter, body, words):
    assert words in fault(interpreter(body))


def test_what_cannot_be_started(interpreter, tmp_path):
    assert "is a folder; name the interpreter in it, such as" in fault(str(tmp_path))
    assert "there is no such file" in fault(str(tmp_path / "none" / "python"))
    assert "there is no such program on PATH" in fault("python-that-nobody-has")
    assert "the interpreter that its first line names is not there" in fault(interpreter("", first="#!/no/such/sh\n"))
    if os.geteuid() or not os.access(interpreter("", 0o644), os.X_OK):
        assert "is not executable" in fault(interpreter("", 0o644))


def test_a_silent_program_is_given_up_on_after_a_word_and_leaves_nothing(interpreter, tmp_path, monkeypatch):
    monkeypatch.setattr(look, "QUIET", 0.2)
    said: list[str] = []
    python = interpreter(f"echo $$ > {tmp_path / 'pid'}; sleep 3600 & sleep 3600")
    started = time.monotonic()
    assert "gave no answer within 1 s" in fault(python, limit=1, say=said.append)
    assert time.monotonic() - started < 10
    assert len(said) == 1
    assert python in said[0]
    pid = int((tmp_path / "pid").read_text())
    wait_for(lambda: not Path(f"/proc/{pid}").exists())


def test_a_broken_engine_is_told_with_what_to_do(probe, toy, model):
    (toy.parent / "tree" / "vllm" / "usage" / "usage_lib.py").unlink(missing_ok=True)
    (toy.parent / "tree" / "vllm" / "__init__.py").write_text("import vllm.engine\nfrom nowhere_at_all import x\n")
    one = probe(processes=1)
    one.ask(Question(model()))
    assert one.beyond is not None
    assert "cannot be imported: ModuleNotFoundError: No module named 'nowhere_at_all'" in one.beyond
    assert f"{toy} -c 'import vllm'" in one.beyond


def test_sources_stand_in_for_the_installed_engine(toy, model, tmp_path):
    installed = found = find(str(toy))
    tree = tmp_path / "checkout"
    (tmp_path / "tree").rename(tree)
    (tmp_path / "tree").mkdir()
    (tree / "vllm" / "_C_compiled.abi3.so").unlink()
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: vllm\nVersion: 9.8.7\n")
    for given in (tree, tree / "vllm"):
        found = find(str(toy), source=given)
        assert (found.folder, found.source, found.version) == (str(tree / "vllm"), str(tree), "9.8.7 (source)")
        assert found.digest != installed.digest
    with VllmProbe(str(toy), devices.find("h100-80gb"), use_cache=False, source=tree) as probe:
        assert isinstance(probe.ask(Question(model())), Accepted)
        (idle,) = probe._pool._idle
        assert isinstance(idle, EngineProcess)
        assert idle.hello["package"] == str(tree / "vllm")
    arguments = tree / "vllm" / "engine" / "arg_utils.py"
    arguments.write_text(arguments.read_text() + "\n# edited\n")
    assert find(str(toy), source=tree).digest != found.digest


def test_a_folder_without_sources(toy, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"--engine-source .*empty: holds no sources of vLLM"):
        find(str(toy), source=tmp_path / "empty")
