"""Views laid side by side: what is a finding, what is none, and what a finding says."""

from collections.abc import Sequence
from typing import Any

import pytest

from staticfire.engine.view import View
from staticfire.harness.sync.base import Audit, Finding, Held, Road, Seen
from staticfire.harness.sync.compare import NO_ROAD, audit

ROADS = {
    "runtime.block_size": Road("must_agree", "in the report"),
    "runtime.num_gpu_blocks": Road("sum_over_engines", "in the report"),
    "model.max_model_len": Road("minimum", "in the report"),
    "runtime.kv_cache_size_tokens": Road("per_engine", "in the report"),
}


def fields(**change: Any) -> dict[str, Any]:
    base = {
        "cache.block_size": 16,
        "cache.cache_dtype": "float32",
        "cache.num_gpu_blocks_override": None,
        "model.max_model_len": 2048,
        "model.dtype": "float32",
        "runtime.block_size": 80,
        "runtime.num_gpu_blocks": 100,
        "runtime.kv_cache_size_tokens": 500,
    }
    return base | {name.replace("__", "."): value for name, value in change.items()}


def labels(**change: Any) -> dict[str, Any]:
    """What the metrics show of `fields`: cache and run time, the latter where both have a name, nothing for None."""
    return {
        "cache.cache_dtype": "float32",
        "runtime.block_size": 80,
        "runtime.num_gpu_blocks": 100,
        "runtime.kv_cache_size_tokens": 500,
    } | {name.replace("__", "."): value for name, value in change.items()}


def one_engine(engine: int = 0) -> list[View]:
    return [
        View(role="front end", engine=engine, fields=fields()),
        View(role="engine core", engine=engine, fields=fields()),
        View(role="worker", engine=engine, rank=0, fields=fields()),
        View(role="worker", engine=engine, rank=1, fields=fields()),
        View(role="metrics", engine=engine, fields=labels()),
    ]


def two_engines() -> list[View]:
    merged = fields(runtime__num_gpu_blocks=200)
    return [View(role="front end", fields=merged), *one_engine(0), *one_engine(1)]


def changed(views: Sequence[View], holder: str, **change: Any) -> list[View]:
    assert holder in {view.holder for view in views}
    change = {name.replace("__", "."): value for name, value in change.items()}
    return [
        View(role=v.role, engine=v.engine, rank=v.rank, fields={**v.fields, **change}) if v.holder == holder else v
        for v in views
    ]


def without(views: Sequence[View], holder: str, field: str) -> list[View]:
    return [
        View(role=v.role, engine=v.engine, rank=v.rank, fields={n: x for n, x in v.fields.items() if n != field})
        if v.holder == holder
        else v
        for v in views
    ]


def judged(views: Sequence[View], **more: Any) -> Audit:
    return audit(Seen("toy 1", views, ROADS, **more), "a toy")


def only(audit: Audit) -> Finding:
    (finding,) = audit.findings
    return finding


@pytest.mark.parametrize("views", [[View(role="front end", fields=fields()), *one_engine()], two_engines()])
def test_those_who_agree_give_no_finding(views):
    assert judged(views).findings == ()
    assert judged(views).fields == len(fields())


def test_a_front_end_left_behind_is_the_founding_fault():
    views = changed(two_engines(), "front end", runtime__block_size=16)
    finding = only(judged(views))
    assert (finding.kind, finding.field) == ("differs", "runtime.block_size")
    assert finding.message == "runtime.block_size: front end has 16, should have 80"
    assert finding.held[0].value == 80
    assert finding.held[0].holders[:2] == ("engine core 0", "engine core 1")
    assert finding.held[1] == Held(("front end",), 16)
    assert finding.travels == "in the report"


@pytest.mark.parametrize(
    ("holder", "field", "value"),
    [
        ("worker 0.1", "runtime.num_gpu_blocks", 99),
        ("worker 1.0", "cache.cache_dtype", "bfloat16"),
        ("front end on engine 1", "runtime.block_size", 16),
        ("metrics of engine 1", "runtime.block_size", 16),
        ("metrics of engine 0", "runtime.num_gpu_blocks", 200),
        ("front end", "runtime.num_gpu_blocks", 100),
        ("front end", "model.max_model_len", 4096),
        ("front end", "model.dtype", "bfloat16"),
        ("front end", "cache.num_gpu_blocks_override", 5),
    ],
)
def test_every_holder_is_compared(holder, field, value):
    finding = only(judged(changed(two_engines(), holder, **{field.replace(".", "__"): value})))
    assert finding.field == field
    assert [held.value for held in finding.held if holder in held.holders] == [value]
    assert f"{holder} has {value!r}" in finding.message


def test_engines_may_differ_where_their_values_are_merged():
    views = changed(two_engines(), "front end", runtime__num_gpu_blocks=150, model__max_model_len=1024)
    for role in ("front end on engine 1", "engine core 1", "worker 1.0", "worker 1.1", "metrics of engine 1"):
        views = changed(views, role, runtime__num_gpu_blocks=50, runtime__kv_cache_size_tokens=7)
    for role in ("front end on engine 1", "engine core 1", "worker 1.0", "worker 1.1"):
        views = changed(views, role, model__max_model_len=1024)
    assert judged(views).findings == ()
    assert only(judged(changed(views, "front end", model__max_model_len=2048))).field == "model.max_model_len"


def test_engines_that_must_agree_and_do_not_are_a_finding_though_each_is_true_to_itself():
    views = two_engines()
    for role in ("front end on engine 1", "engine core 1", "worker 1.0", "worker 1.1", "metrics of engine 1"):
        views = changed(views, role, runtime__block_size=96)
    finding = only(judged(views))
    assert finding.field == "runtime.block_size"
    assert "engine core 0 has 80, engine core 1 has 96" in finding.message


def test_a_label_that_is_not_shown_is_missing():
    finding = only(judged(without(two_engines(), "metrics of engine 1", "runtime.block_size")))
    assert finding.kind == "missing"
    assert Held(("metrics of engine 1",), present=False) in finding.held
    assert "metrics of engine 1 lacks it, should have 80" in finding.message


def test_a_field_that_a_holder_lacks_is_missing():
    finding = only(judged(without(two_engines(), "front end", "model.dtype")))
    assert (finding.kind, finding.travels) == ("missing", NO_ROAD)


def test_a_label_of_none_is_a_finding():
    views = changed(two_engines(), "metrics of engine 0", cache__num_gpu_blocks_override="None")
    assert only(judged(views)).field == "cache.num_gpu_blocks_override"


def test_what_was_not_reported_is_a_finding_even_where_the_values_agree_by_luck():
    finding = only(judged(two_engines(), unreported={1: ["runtime.block_size"]}))
    assert finding.kind == "not-sent"
    assert "engine 1 did not report it" in finding.message


def test_true_is_not_one():
    views = changed(two_engines(), "front end", cache__cache_dtype="float32", model__dtype=True)
    views = [
        View(role=v.role, engine=v.engine, rank=v.rank, fields={**v.fields, "model.dtype": 1})
        if v.holder != "front end" and v.role != "metrics"
        else v
        for v in views
    ]
    assert only(judged(views)).field == "model.dtype"


def test_json_has_everything():
    views = without(changed(two_engines(), "front end", runtime__block_size=16), "front end", "model.dtype")
    document = judged(views, notes=("no metrics",)).as_json()
    assert document["notes"] == ["no metrics"]
    assert document["holders"] == [view.holder for view in views]
    assert [finding["field"] for finding in document["findings"]] == ["model.dtype", "runtime.block_size"]
    assert document["findings"][1]["held"][1] == {"holders": ["front end"], "present": True, "value": 16}
