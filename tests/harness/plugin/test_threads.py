"""An engine in one of several workers takes its share of the cores, and leaves the process as it was."""

import os

import pytest
import torch

from staticfire.harness.plugin import threads
from staticfire.harness.plugin.threads import SAID, WORKERS, engine_threads

NAMES = (SAID, "OMP_WAIT_POLICY")


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in (*NAMES, WORKERS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "available_cores", lambda: 9)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def state():
    return torch.get_num_threads(), *(os.environ.get(name) for name in NAMES)


@pytest.mark.parametrize(
    ("variables", "count", "inside"),
    [
        ({}, None, (3, None, None)),
        ({WORKERS: "1"}, None, (3, None, None)),
        ({WORKERS: "2"}, None, (4, "4", "PASSIVE")),
        ({WORKERS: "20"}, None, (1, "1", "PASSIVE")),
        ({WORKERS: "2", "OMP_WAIT_POLICY": "ACTIVE"}, None, (4, "4", "ACTIVE")),
        ({WORKERS: "2", SAID: "6"}, None, (3, "6", None)),
        ({WORKERS: "2"}, 2, (2, None, None)),
        ({}, 2, (2, None, None)),
    ],
    ids=str,
)
def test_threads_are_shared_unless_somebody_says_how_many(monkeypatch, variables, count, inside):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    before = state()
    with engine_threads(count):
        assert state() == inside
        with engine_threads(count):
            assert state() == inside, "the share is not shared again"
    assert state() == before
    with pytest.raises(ZeroDivisionError), engine_threads(count):
        raise ZeroDivisionError
    assert state() == before


SUITE = """
    import os
    import pytest

    @pytest.mark.parametrize("number", range(2))
    def test_it(number, vllm_runner, hf_runner):
        with vllm_runner("llama-tiny", enable_chunked_prefill=None) as engine:
            import torch

            assert torch.get_num_threads() == 1
            assert os.environ["OMP_NUM_THREADS"] == "1"
            engine.generate_greedy(["x"], 1)
        with hf_runner("llama-tiny") as hf:
            assert hf.generate_greedy(["x"], 1)
        assert "OMP_NUM_THREADS" not in os.environ
"""


@pytest.mark.slow
@pytest.mark.engine
def test_an_engine_of_a_worker_has_its_share(suite, monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    suite.write("test_it.py", SUITE)
    run = suite.run("-n", str(max(2, len(os.sched_getaffinity(0)))), "--sf-guards=leaks")
    assert run.code == 0, run.text
