import pytest

from staticfire.harness.run.identity import Identity
from staticfire.harness.run.record import RunRecord
from staticfire.harness.run.result import CellResult

FAILURE = {
    "against": "transformers",
    "grade": "wrong",
    "run": "cold",
    "prompt": 3,
    "prompt_name": "weather",
    "position": 17,
    "message": "logprobs are off by 0.31",
    "expected_token": {"id": 12, "text": " the"},
    "observed_token": {"id": 99, "text": " a"},
    "logprobs": [
        {
            "position": 17,
            "forced": 12,
            "tokens": [
                {"id": 12, "text": " the", "expected": -0.125, "observed": -2.5},
                {"id": 99, "text": " a", "expected": -3.0, "observed": None},
            ],
        }
    ],
    "stats": {"cached_tokens": 32, "chunks": [[0, 16], [16, 16]]},
}


@pytest.fixture
def failure():
    return FAILURE


@pytest.fixture
def make_record():
    def make(results, file="matrices/hybrid.toml", selected=None, axes=("model", "block_size", "caching")):
        identity = Identity(
            matrix="hybrid",
            digest="0123456789abcdef",
            job="staticfire.harness.run.judged:judge_cell",
            content="c" * 64,
            versions={"staticfire": "0.1.0", "python": "3.11.9"},
        )
        return RunRecord(
            file=file,
            identity=identity,
            started="2026-01-02T03:04:05+00:00",
            seconds=161.25,
            selected=len(results) if selected is None else selected,
            axes=axes,
            results=results,
        )

    return make


@pytest.fixture
def make_result():
    def make(name, verdict="passed", seconds=0.5, rule=None, detail=None, **axes):
        axes = {"model": "jamba-tiny", "block_size": 16, "caching": True, **axes}
        return CellResult(id=name, axes=axes, verdict=verdict, seconds=seconds, rule=rule, detail=detail)

    return make


@pytest.fixture
def record(make_record, make_result, failure):
    return make_record(
        [
            make_result("jamba-16", detail={"grade": "exact", "noise": {"max": 1e-6}}),
            make_result("jamba-32", "failed", block_size=32, detail={"grade": "wrong", "failures": [failure]}),
            make_result("jamba-off", "refused as expected", rule="SF101", caching=False),
            make_result("llama-16", "error", model="llama-tiny", detail={"error": "it died: killed by SIGKILL"}),
            make_result("llama-32", "accepted unexpectedly", model="llama-tiny", block_size=32),
            make_result("llama-64", "refused unexpectedly", model="llama-tiny", block_size=64, rule="SF201"),
        ]
    )
