"""Cells are judged end to end; faults planted in the engine turn them red with evidence a person can use."""

import json
from dataclasses import replace

import pytest
import torch

from staticfire.engine.cache import manager
from staticfire.engine.errors import EngineError
from staticfire.engine.layers import attention as attention_module
from staticfire.engine.layers import mamba1, moe
from staticfire.engine.layers.attention import Attention
from staticfire.engine.scheduler import scheduler
from staticfire.engine.worker import runner
from staticfire.harness.matrix.cell import UNSET, Cell
from staticfire.harness.matrix.workload import RELATION_NAMES
from staticfire.harness.models.make import ensure
from staticfire.harness.oracle import judge as module
from staticfire.harness.oracle.judge import judge, question_of
from staticfire.harness.oracle.subject import Subject
from staticfire.harness.probe.base import Accepted, Crashed
from staticfire.harness.probe.reference import ReferenceProbe
from staticfire.kernels.selective_scan import selective_scan_varlen

pytestmark = [pytest.mark.engine, pytest.mark.slow]

BASE = {"model": "jamba-tiny", "dtype": "float32", "block_size": 16, "max_num_batched_tokens": 64}


def cell(**axes):
    return Cell(id="a-cell", axes=BASE | axes, verdict="valid", fixed={"max_model_len": 256, "max_num_seqs": 8})


@pytest.fixture
def judged(cache_dir):
    def run(asked):
        return judge(asked, cache_dir=cache_dir, matrix_file="m.toml")

    return run


@pytest.fixture
def warm(judged):
    """Judge a cell while the engine is whole, so that its group's canonical answers are stored."""

    def run(asked):
        assert judged(asked).verdict == "passed"
        return asked

    return run


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_a_sound_cell_passes_and_says_what_was_compared(judged, dtype):
    result = judged(cell(dtype=dtype))
    assert result.verdict == "passed"
    assert result.grade in (("exact", "within-noise") if dtype == "bfloat16" else ("exact",))
    detail = json.loads(json.dumps(result.detail))
    conditions = detail["conditions"]
    assert conditions["block-boundaries"]["blocks_spanned"] >= 3
    assert conditions["chunk-split"]["prompts_split"] > 0
    assert conditions["prefix-hit"]["cached_tokens"] > 0
    assert conditions["prefix-hit"]["restored_states"] > 0
    assert conditions["preemption"]["preemptions"] > 0
    exact = dtype != "bfloat16"
    assert set(conditions) == {*RELATION_NAMES} - (set() if exact else {"sampling", "prompt-logprobs"})
    compared = detail["transformers"]["prompts"]
    assert compared > detail["prompts"] + 8 + 4  # cold, then block prompts and texts again, then four in a small pool
    own = 8 + 2 + 1 if exact else 0  # sampled twice, the values of three prompts: no canonical cell has those
    assert detail["canonical"]["prompts"] + detail["canonical"]["skipped"] == compared - own
    kinds = set(detail["transformers"]["because"])
    assert kinds <= ({"routing", "token", "argmax"} if dtype == "bfloat16" else set())
    assert ("routing" in kinds) == (detail["transformers"]["routing_flips"] > 0)
    assert 0 < detail["noise"]["rms"] < detail["noise"]["max"]
    assert "failures" not in detail


def test_float64_cells_agree_with_their_group_within_1e_9(judged):
    result = judged(cell(dtype="float64", quantization="experts_int8", block_size=32))
    assert result.verdict == "passed"
    assert result.detail["canonical"]["max_delta"] < 1e-9
    assert result.detail["canonical"]["skipped"] == 0


WATCHED = {"preemption", "eviction", "state-reuse", "admission-order", "aborts", "routing"}
"""What is seen in one process only."""


@pytest.mark.parametrize(
    ("axes", "left_out"),
    [
        ({"enable_multiprocessing": True}, WATCHED),
        ({"tensor_parallel_size": 2}, WATCHED),
        ({"data_parallel_size": 2}, WATCHED | {"prefix-hit", "later-block", "reused-id"}),
    ],
)
def test_layouts_of_processes_agree_within_1e_9_and_say_what_was_not_looked_at(judged, axes, left_out):
    result = judged(cell(dtype="float64", **axes))
    assert result.verdict == "passed"
    assert result.detail["canonical"]["max_delta"] < 1e-9
    assert result.detail["canonical"]["skipped"] == 0
    assert set(result.detail["left_out"]) == left_out
    assert all(result.detail["left_out"].values())


def test_what_is_left_out_is_left_out_for_a_reason(judged):
    assert "left_out" not in judged(cell(dtype="float64")).detail


def test_a_dense_model_and_unset_axes(judged):
    result = judged(cell(model="llama-tiny", quantization=UNSET))
    assert result.verdict == "passed"
    assert result.detail["transformers"]["routing_flips"] == 0
    assert "restored_states" not in result.detail["conditions"]["prefix-hit"]


REFUSED = {"enable_chunked_prefill": False, "max_num_batched_tokens": 256}
"""Prefix caching is on by default: align mode without chunked prefill."""


def refused(*rules, **axes):
    return replace(cell(**(REFUSED | axes)), verdict="refused", rules=rules, reason="because")


@pytest.mark.parametrize("model", ["jamba-tiny", "jamba-v0.1"], ids=["tiny", "only resolved"])
def test_a_cell_refused_by_exactly_its_rules(judged, model):
    result = judged(refused("SF101", model=model))
    assert (result.verdict, result.rule) == ("refused as expected", "SF101")
    assert result.detail["message"]


@pytest.mark.parametrize("rules", [("SF201",), ("SF101", "SF201"), ()])
def test_a_cell_refused_by_other_rules_than_it_names(judged, rules):
    result = judged(refused(*rules))
    assert (result.verdict, result.rule) == ("refused unexpectedly", "SF101")
    assert result.detail["expected"] == "+".join(rules)


def test_a_cell_that_should_be_refused_and_is_not(judged):
    result = judged(refused("SF101", enable_prefix_caching=False))
    assert result.verdict == "accepted unexpectedly"
    assert result.detail["expected"] == "SF101"


def test_an_engine_that_starts_though_its_probe_refuses(judged, monkeypatch):
    monkeypatch.setattr(module, "Subject", lambda checkpoint, config: Subject(checkpoint, {}))
    result = judged(refused("SF101"))
    assert result.verdict == "accepted unexpectedly"
    assert "though the probe says" in result.detail["message"]


def test_an_engine_that_refuses_though_its_probe_accepts(judged, monkeypatch):
    monkeypatch.setattr(ReferenceProbe, "ask", lambda self, model, config: Accepted())
    assert judged(refused("SF101")).verdict == "accepted unexpectedly"


def test_a_probe_without_an_answer_is_an_error(judged, monkeypatch):
    monkeypatch.setattr(ReferenceProbe, "ask", lambda self, model, config: Crashed("boom"))
    with pytest.raises(EngineError, match="boom"):
        judged(refused("SF101"))


def test_a_valid_cell_that_the_engine_refuses(judged):
    result = judged(replace(refused(), verdict="valid"))
    assert (result.verdict, result.rule) == ("refused unexpectedly", "SF101")
    assert "SF101" in result.detail["message"]


def test_a_cell_whose_condition_cannot_occur_fails_as_vacuous(judged):
    short = replace(cell(max_num_batched_tokens=256), fixed={"max_model_len": 60, "max_num_seqs": 8})
    result = judged(short)
    assert result.verdict == "failed"
    assert result.grade == "exact"
    assert "3 blocks of 16 are 48" in result.detail["vacuous"]["block-boundaries"]
    assert result.detail["rerun"] == "staticfire run m.toml --cell a-cell"


def negated_scan(real):
    return lambda *args, **named: -real(*args, **named)


def scale_forgotten(real):
    def fused_moe(x, w13, w2, weights, ids, w13_scale, w2_scale, **named):
        return real(x, w13, w2, weights, ids, w13_scale, torch.ones_like(w2_scale), **named)

    return fused_moe


def table_shifted(real):
    def paged(q, kv_cache, block_tables, *rest, **named):
        named.pop("metadata", None)  # made from the right table
        return real(q, kv_cache, block_tables.roll(1, dims=1), *rest, **named)

    return paged


MUTATIONS = {
    "a sign in the scan": (mamba1, "selective_scan_varlen", negated_scan, {}),
    "a sign in the step": (mamba1, "selective_state_update", negated_scan, {}),
    "an index in the block table": (attention_module, "paged_attention", table_shifted, {}),
    "a forgotten int8 scale": (moe, "fused_moe", scale_forgotten, {"quantization": "experts_int8"}),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_engine_fails_with_evidence(warm, judged, monkeypatch, mutation):
    owner, name, make, axes = MUTATIONS[mutation]
    asked = warm(cell(**axes))
    monkeypatch.setattr(owner, name, make(getattr(owner, name)))
    result = judged(asked)
    assert (result.verdict, result.grade) == ("failed", "wrong")
    detail = json.loads(json.dumps(result.detail))
    assert detail["rerun"] == "staticfire run m.toml --cell a-cell"
    assert detail["failed_comparisons"] >= len(detail["failures"]) > 0
    first = detail["failures"][0]
    assert first["against"] in ("transformers", "canonical")
    assert first["message"]
    assert first["logprobs"]
    shown = [token for row in first["logprobs"] for token in row["tokens"]]
    assert any(token["expected"] is not None and token["observed"] is not None for token in shown)
    assert all({"id", "text"} <= token.keys() for token in shown)
    differing = [f for f in detail["failures"] if f.get("first_differing_token") is not None]
    assert differing, "a fault of this size changes tokens"
    for failure in differing:
        assert failure["expected_token"]["id"] != failure["observed_token"]["id"]


def test_a_state_that_is_not_restored_fails_in_the_prefix_run_alone(warm, judged, monkeypatch):
    asked = warm(cell(max_num_batched_tokens=256))
    real = runner.ModelRunner._prepare_caches

    def forget(self, output):
        real(self, output)
        for chunk in output.chunks:
            if 0 < chunk.start < chunk.num_prompt_tokens:  # resumes in the middle of a prompt
                for _, ssm in self.caches.states.values():
                    ssm[chunk.state_blocks[0]] = 0

    monkeypatch.setattr(runner.ModelRunner, "_prepare_caches", forget)
    result = judged(asked)
    assert (result.verdict, result.grade) == ("failed", "wrong")
    assert "prefix-hit" in {failure["run"] for failure in result.detail["failures"]} or any(
        failure["stats"]["chunks"][1:2] for failure in result.detail["failures"]
    )


def shorten(monkeypatch, *, values_too=False):
    """Let the engine drop the last token of every answer."""
    real = Subject.run

    def shorter(self, *args, **named):
        runs = real(self, *args, **named)
        for run in runs:
            completion = run.output.outputs[0]
            completion.token_ids = completion.token_ids[:-1]
            if values_too and completion.logprobs:
                completion.logprobs = completion.logprobs[:-1]
        return runs

    monkeypatch.setattr(Subject, "run", shorter)


def test_a_dropped_token_is_wrong_whatever_its_values(warm, judged, monkeypatch):
    asked = warm(cell())
    shorten(monkeypatch)
    result = judged(asked)
    assert result.grade == "wrong"
    assert "15 tokens, 16 expected" in result.detail["failures"][0]["message"]


def test_a_broken_engine_fails_though_its_group_is_broken_alike(cache_dir, tmp_path, monkeypatch):
    """As after an edit: the canonical cell is computed by the broken engine, and transformers alone can tell."""
    monkeypatch.setattr(module, "ensure", lambda name, _: ensure(name, cache_dir))
    monkeypatch.setattr(mamba1, "selective_scan_varlen", negated_scan(selective_scan_varlen))
    result = judge(cell(dtype="float64"), cache_dir=tmp_path)
    assert (result.verdict, result.grade) == ("failed", "wrong")
    assert result.detail["transformers"]["grade"] == "wrong"
    assert "transformers" in {failure["against"] for failure in result.detail["failures"]}


def test_a_canonical_cell_that_ends_early_fails_the_cell_and_is_not_stored(cache_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ensure", lambda name, _: ensure(name, cache_dir))
    shorten(monkeypatch, values_too=True)
    result = judge(cell(), cache_dir=tmp_path)
    assert (result.verdict, result.grade) == ("failed", "wrong")
    assert "15 tokens with 15 log-probabilities, 16 expected" in result.detail["vacuous"]["canonical"]
    assert "canonical" not in {failure["against"] for failure in result.detail["failures"]}
    assert not [path for path in tmp_path.rglob("canonical-*") if path.is_dir()]


def test_a_relation_that_is_broken_fails_the_cell_and_leads_its_evidence(judged, monkeypatch):
    monkeypatch.setattr(scheduler, "POLICIES", {"fcfs": lambda request: (0, -request.arrival, request.request_id)})
    result = judged(cell())
    assert (result.verdict, result.grade) == ("failed", "wrong")
    first = result.detail["failures"][0]
    assert (first["run"], first["against"]) == ("admission-order", "the relation admission-order")
    assert "under the policy 'fcfs' the request to begin as number 1 is admission-order-0" in first["message"]


def test_an_engine_that_breaks_down_in_a_relation_fails_there_with_its_traceback(judged, monkeypatch):
    monkeypatch.setattr(manager.CacheManager, "lookup", whole_prompts(manager.CacheManager.lookup))
    result = judged(cell())
    assert (result.verdict, result.grade) == ("failed", "wrong")
    (first,) = (failure for failure in result.detail["failures"] if failure["run"] == "prefix-hit")
    assert first["message"].startswith("the engine broke down: RuntimeError: nothing can advance")
    assert "in schedule" in result.detail["traceback"]
    assert "later-block" not in result.detail["conditions"]


def whole_prompts(real):
    """Let a hit be as long as the prompt."""

    def lookup(self, request):
        request.prompt_token_ids.append(0)
        try:
            return real(self, request)
        finally:
            request.prompt_token_ids.pop()

    return lookup


def test_of_each_run_that_failed_the_first_failure_is_shown():
    def failures(*runs):
        return [{"run": run, "message": str(i)} for i, run in enumerate(runs)]

    def shown(*runs):
        return [int(failure["message"]) for failure in module._shown(failures(*runs))]

    assert shown(*["cold"] * 9) == [0, 1, 2, 3, 4]
    assert shown(*["cold"] * 9, "a", "a", "b") == [0, 1, 2, 9, 11]
    assert shown(*"abcdefgabc") == [0, 1, 2, 3, 4, 5, 6]
    assert shown() == []


def test_questions_ask_only_for_what_may_change_the_answer(jamba, llama):
    def ask(folder, **typed):
        with Subject(folder, typed) as subject:
            return question_of(folder, subject.config)

    base = ask(jamba, dtype="float32")
    assert ask(jamba, dtype="float32", block_size=64, enable_prefix_caching=False, max_num_seqs=3) == base
    assert ask(jamba, dtype="float32", mamba_ssm_cache_dtype="bfloat16") != base
    assert ask(jamba, dtype="float64") != base
    dense = ask(llama, dtype="float32")
    assert (dense.ssm_dtype, dense.conv_dtype, dense.kv_dtype) == (None, None, "float32")


def test_the_attention_layer_is_where_the_block_table_is_used():
    """The premise of a mutation above."""
    assert "paged_attention" in Attention.__call__.__code__.co_names
