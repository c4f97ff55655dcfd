"""The interpreter as it is named: a relative path means the same to the engine's process as to the user."""

import os

from staticfire.harness.models import devices
from staticfire.harness.probe.base import Accepted, Question
from staticfire.harness.probe.vllm.probe import VllmProbe


def test_a_relative_interpreter_is_found_from_the_engines_own_folder(toy, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    probe = VllmProbe(f".{os.sep}{toy.name}", devices.find("h100-80gb"), use_cache=False)
    try:
        assert probe.installed.python == str(toy)
        assert isinstance(probe.ask(Question(model())), Accepted)
    finally:
        probe.close()
