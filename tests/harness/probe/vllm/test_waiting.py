"""Pauses between tries to reach a model hub are left out; every other pause is kept."""

import time

import pytest

from staticfire.harness.probe.vllm.agent import waiting


def caller(name):
    """A function of a module called `name` that sleeps."""
    scope = {"__name__": name, "time": time}
    exec("def pause(seconds):\n    time.sleep(seconds)\n", scope)
    return scope["pause"]


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("vllm.transformers_utils.repo_utils", []),
        ("vllm.transformers_utils", []),
        ("huggingface_hub.utils._http", []),
        ("transformers.utils.hub", []),
        ("vllm.engine.arg_utils", [7.0]),
        ("vllm.transformers_utils_of_mine", [7.0]),
        ("threading", [7.0]),
    ],
)
def test_only_what_fetches_does_not_pause(monkeypatch, name, kept):
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    waiting.skip_pauses()
    caller(name)(7.0)
    assert slept == kept
