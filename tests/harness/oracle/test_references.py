"""Answers are asked for once, shared, and asked for again when anything behind them changes."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from staticfire.harness.oracle import references as module
from staticfire.harness.oracle.base import Noise, Question, Replay, Trace
from staticfire.harness.oracle.references import (
    SAME_IN_GROUP,
    CanonicalError,
    CanonicalReferences,
    OracleReferences,
    canonical_config,
)
from staticfire.harness.oracle.store import Store
from staticfire.harness.oracle.subject import Subject

pytestmark = pytest.mark.engine

ROUTING = np.ones((2, 3, 1), np.int16)


class Counting:
    """Answers by a formula and keeps count."""

    name = "counting"

    def __init__(self, version="1"):
        self.version = version
        self.asked = []

    def trace(self, question, prompt):
        self.asked.append(prompt)
        rows = np.full((2, 4), -float(len(prompt)), np.float32)
        logits = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
        return Trace(prompt, (1, 2), rows, logits, ROUTING, Noise(0.5, 0.25, 0.125))

    def replay(self, question, prompt, tokens, routing):
        self.asked.append("replay")
        return Replay(np.full((2, 4), float(routing.sum())), np.zeros((2, 3, 2)))

    def score(self, question, tokens, last, routing):
        self.asked.append("own routing" if routing is None else "given routing")
        return np.full((last, 4), float(sum(tokens)))


@pytest.fixture
def question(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"w")
    return Question(checkpoint=folder, dtype="float32", quantization=None, max_tokens=2)


def test_scores_are_asked_for_once_by_tokens_and_routing(tmp_path, question):
    oracle = Counting()
    unknown = np.where(ROUTING.max() == ROUTING, -1, ROUTING)
    for _ in range(2):
        references = OracleReferences(oracle, Store(tmp_path / "store"), question)
        for routing in (ROUTING, unknown, ROUTING[:0]):
            np.testing.assert_array_equal(references.score((3, 4), 2, routing), np.full((2, 4), 7.0))
        assert references.score((3, 4), 1, ROUTING).shape == (1, 4)
    assert oracle.asked == ["given routing", "own routing", "given routing"]


def test_each_prompt_is_asked_for_once_and_comes_back_whole(tmp_path, question):
    oracle = Counting()
    first = OracleReferences(oracle, Store(tmp_path / "store"), question).traces([(7,), (8, 9), (7,)])
    again = OracleReferences(oracle, Store(tmp_path / "store"), question).traces([(8, 9), (5,)])
    assert oracle.asked == [(7,), (8, 9), (5,)]
    for trace in (first[1], again[0]):
        assert (trace.prompt, trace.tokens, trace.noise) == ((8, 9), (1, 2), Noise(0.5, 0.25, 0.125))
        np.testing.assert_array_equal(trace.rows, np.full((2, 4), -2.0))
        np.testing.assert_array_equal(trace.routing, ROUTING)
        np.testing.assert_array_equal(trace.router_logits, np.arange(12).reshape(2, 3, 2))


def test_replays_are_kept_by_routing(tmp_path, question):
    oracle = Counting()
    references = OracleReferences(oracle, Store(tmp_path / "store"), question)
    (trace,) = references.traces([(7,)])
    one = references.replay(trace, ROUTING)
    two = references.replay(trace, ROUTING * 2)
    assert OracleReferences(oracle, Store(tmp_path / "store"), question).replay(trace, ROUTING).rows[0, 0] == 6.0
    assert (one.rows[0, 0], two.rows[0, 0]) == (6.0, 12.0)
    assert oracle.asked == [(7,), "replay", "replay"]


CHANGES = {
    "code": lambda q, o: (q, Counting("2")),
    "dtype": lambda q, o: (replace(q, dtype="float64"), o),
    "quantization": lambda q, o: (replace(q, quantization="experts_int8"), o),
    "tokens": lambda q, o: (replace(q, max_tokens=3), o),
    "state dtype": lambda q, o: (replace(q, ssm_dtype="bfloat16"), o),
    "kv dtype": lambda q, o: (replace(q, kv_dtype="bfloat16"), o),
    "weights": lambda q, o: (other_weights(q), o),
}


def other_weights(question):
    folder = shutil.copytree(question.checkpoint, question.checkpoint.parent / "other" / question.checkpoint.name)
    (folder / "model.safetensors").write_bytes(b"v")
    return replace(question, checkpoint=folder)


@pytest.mark.parametrize("change", CHANGES)
def test_another_question_is_asked_anew(tmp_path, question, change):
    oracle = Counting()
    store = Store(tmp_path / "store")
    OracleReferences(oracle, store, question).traces([(7,)])
    changed, other = CHANGES[change](question, oracle)
    before = len(other.asked)
    OracleReferences(other, store, changed).traces([(7,)])
    assert len(other.asked) == before + 1


def test_the_canonical_cell_keeps_what_changes_the_computation_and_nothing_else():
    typed = dict.fromkeys(SAME_IN_GROUP, "kept") | {
        "block_size": 64,
        "enable_prefix_caching": True,
        "mamba_cache_mode": "align",
        "max_num_seqs": 2,
        "max_num_batched_tokens": 64,
    }
    assert canonical_config(typed) == dict.fromkeys(SAME_IN_GROUP, "kept") | {
        "block_size": 16,
        "enable_prefix_caching": False,
        "enable_chunked_prefill": True,
        "max_num_batched_tokens": 8192,
    }


@pytest.fixture
def traced(jamba, cuts, cache_dir):
    from staticfire.harness.oracle.transformers import TransformersOracle

    asked = Question(checkpoint=jamba, dtype="float32", quantization=None, max_tokens=4)
    return OracleReferences(TransformersOracle(), Store(cache_dir / "oracle"), asked).traces(cuts[:2])


def test_the_canonical_cell_runs_once_per_prompt_and_engine(tmp_path, jamba, traced, monkeypatch):
    made = []

    def counted(*args):
        made.append(args)
        return Subject(*args)

    monkeypatch.setattr(module, "Subject", counted)
    typed = {"dtype": "float32", "block_size": 32}
    first = CanonicalReferences(Store(tmp_path), jamba, typed, 4).answers(traced)
    CanonicalReferences(Store(tmp_path), jamba, typed | {"block_size": 64}, 4).answers(traced)
    assert len(made) == 1
    monkeypatch.setattr(module, "engine_digest", lambda: "edited")
    CanonicalReferences(Store(tmp_path), jamba, typed, 4).answers(traced)
    assert len(made) == 2
    for answer, trace in zip(first, traced, strict=True):
        assert answer.expected.forced == trace.tokens
        assert answer.expected.rows.shape == trace.rows.shape
        np.testing.assert_allclose(np.exp(answer.expected.rows).sum(-1), 1.0, rtol=1e-5)
        assert answer.routing.shape == trace.routing.shape


def test_a_canonical_run_that_was_not_plain_is_never_stored(tmp_path, jamba, traced, monkeypatch):
    monkeypatch.setattr(module, "PLAIN", dict(module.PLAIN) | {"max_num_batched_tokens": 16, "max_num_seqs": 4})
    with pytest.raises(CanonicalError, match="not plain"):
        CanonicalReferences(Store(tmp_path), jamba, {"dtype": "float32"}, 4).answers(traced)


def test_the_engine_digest_covers_engine_and_kernels(monkeypatch, tmp_path):
    seen: list[Path] = []
    monkeypatch.setattr(module, "code_digest", seen.extend)
    module.engine_digest.__wrapped__()
    assert [folder.name for folder in seen] == ["engine", "kernels"]
    assert all(list(folder.rglob("*.py")) for folder in seen)
