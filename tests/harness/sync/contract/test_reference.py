"""Our own response is held to the same contract, and faults planted in what applies it are found."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.ready.response import ReadyResponse
from staticfire.engine.ready.settle import Settled, settle
from staticfire.harness.sync.contract import reference
from staticfire.harness.sync.contract.audit import audit
from staticfire.harness.sync.contract.base import Report, Run

Answers = Sequence[ReadyResponse]


def hold(examples: int = 8) -> Report:
    return audit(reference.ReferenceSubject(), examples=examples)


def runtime(settled: Settled, **values: Any) -> Settled:
    config = replace(settled.config, runtime=replace(settled.config.runtime, **values))
    return msgspec.structs.replace(settled, config=config)


def none_erases(resolved: ResolvedConfig, answers: Answers) -> Settled:
    settled, last = settle(resolved, answers), answers[-1].mamba_block_size
    return settled if last is UNSET else runtime(settled, mamba_block_size=last)


def counts_twice(resolved: ResolvedConfig, answers: Answers) -> Settled:
    counts = [answer.num_gpu_blocks for answer in answers if answer.num_gpu_blocks is not UNSET]
    return runtime(settle(resolved, answers), num_gpu_blocks=sum(counts))


def least_pool(resolved: ResolvedConfig, answers: Answers) -> Settled:
    counts = [answer.num_gpu_blocks for answer in answers if answer.num_gpu_blocks is not UNSET]
    settled = settle(resolved, answers)
    return runtime(settled, num_gpu_blocks=min(counts)) if counts else settled


def last_wins(resolved: ResolvedConfig, answers: Answers) -> Settled:
    agreeing = [msgspec.structs.replace(answer, block_size=answers[-1].block_size) for answer in answers]
    return settle(resolved, agreeing)


def silence_is_zero(resolved: ResolvedConfig, answers: Answers) -> Settled:
    said = [answer.block_size is not UNSET for answer in answers]
    return settle(resolved, answers) if all(said) else runtime(settle(resolved, answers), block_size=0)


@pytest.fixture(scope="module")
def report() -> Report:
    return hold()


def test_it_holds(report):
    assert report.findings == ()
    assert [one.rule for one in report.tried] == [
        "round-trip",
        "missing-field",
        "unknown-field",
        "arrival-order",
        "re-delivery",
        "none-after-value",
        "disagreement",
    ]
    assert not any(one.untried for one in report.tried)


def test_nothing_holds_for_want_of_examples(report):
    tried = {one.rule: one for one in report.tried}
    assert all(one.examples >= 8 * one.fields for one in report.tried)
    assert tried["round-trip"].fields == len(ReadyResponse.__struct_fields__)
    settled = [name for name, reached in report.targets.items() if reached]
    assert tried["arrival-order"].fields == len(settled) >= 15
    assert tried["none-after-value"].fields == 4
    refused = {name for one in tried["arrival-order"].refused for name in one.fields}
    assert {"block_size", "mamba_block_size", "dp_stats_address"} <= refused
    assert not {"num_gpu_blocks", "max_model_len"} & refused, "those are merged, not refused"
    assert all(one.names_a_field for trial in report.tried for one in trial.refused)


def test_what_is_tried_of_the_merges_is_what_they_declare(report):
    merges = report.merges
    assert merges["max_model_len"] == "the smallest"
    assert merges["num_gpu_blocks"] == merges["kv_cache_max_concurrency"] == "added up"
    assert merges["mamba_block_size"] == merges["dtype"] == "refused where they differ"
    assert merges["version"] == merges["data_parallel_rank"] == "each engine's own is kept"


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (none_erases, {("none-after-value", "mamba_block_size"), ("arrival-order", "mamba_block_size")}),
        (counts_twice, {("re-delivery", "num_gpu_blocks")}),
        (last_wins, {(rule, "block_size") for rule in ("merge", "missing-field", "arrival-order", "disagreement")}),
        (least_pool, {("merge", "num_gpu_blocks")}),
        (silence_is_zero, {("missing-field", "block_size")}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_planted_fault_is_found(monkeypatch, fault, found):
    monkeypatch.setattr(reference, "settle", fault)
    report = hold(examples=8)
    assert {(finding.rule, finding.field) for finding in report.findings} == found


def test_an_encoder_that_loses_a_field_is_found(monkeypatch):
    def lossy(response: ReadyResponse) -> bytes:
        return msgspec.msgpack.encode(msgspec.structs.replace(response, state_bytes=UNSET))

    monkeypatch.setattr(reference, "encode", lossy)
    (finding,) = hold(examples=2).findings
    assert (finding.rule, finding.field) == ("round-trip", "state_bytes")


def test_a_typed_value_survives_an_engine_that_says_nothing():
    subject = reference.ReferenceSubject()
    typed = {"runtime.mamba_block_size": 1056}
    (done,) = subject.deliver([Run([{"engine_index": 0}], typed)])
    assert done.end["runtime.mamba_block_size"] == 1056
