"""The founding fault and its kin, planted in the engine: `staticfire sync` must turn red and name them."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from msgspec import UNSET, structs

from staticfire.engine.client import inline, processes
from staticfire.engine.executor import processes as ranks
from staticfire.engine.metrics import collector
from staticfire.engine.ready.merge import merge
from staticfire.harness.cli import main

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LAYOUTS = {
    "in process": [],
    "separate": ["--enable-multiprocessing"],
    "two engines": ["--data-parallel-size", "2"],
}


@pytest.fixture
def sync(capsys):
    def run(*options: str) -> tuple[int, dict[str, dict[str, Any]]]:
        code = main(["sync", "--engine", "reference", "--format", "json", "jamba-tiny-grow", *options])
        document = json.loads(capsys.readouterr().out)
        assert document["in_step"] == (code == 0)
        return code, {finding["field"]: finding for finding in document["findings"]}

    return run


def holders(finding: dict[str, Any]) -> dict[str, Any]:
    return {holder: held["value"] for held in finding["held"] for holder in held["holders"]}


def plant_in_settle(monkeypatch, change) -> None:
    """Let the front end get other responses than the engines sent, whatever the layout."""
    for module in (inline, processes):
        right = module.settle
        monkeypatch.setattr(
            module, "settle", lambda resolved, got, right=right: right(resolved, [change(r) for r in got])
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_response_without_mamba_block_size(sync, monkeypatch, layout):
    plant_in_settle(monkeypatch, lambda response: structs.replace(response, mamba_block_size=UNSET))
    code, findings = sync(*LAYOUTS[layout])
    assert code == 1
    assert set(findings) == {"runtime.mamba_block_size"}
    finding = findings["runtime.mamba_block_size"]
    assert finding["kind"] == "not-sent"
    assert holders(finding)["front end"] == 16  # what was resolved, long ago
    assert holders(finding)["engine core 0"] == 80
    assert holders(finding)["metrics of engine 0"] == 16
    assert "ready response, field mamba_block_size" in finding["travels"]


def test_a_late_none_that_erases_a_value(sync, monkeypatch):
    """Engine 1 has nothing to say of mamba_block_size, and the merge lets the last one win, as vLLM's does."""
    plant_in_settle(
        monkeypatch,
        lambda response: structs.replace(response, mamba_block_size=None) if response.engine_index == 1 else response,
    )

    def last_wins(ordered: Any, *rest: Any) -> Any:
        return {**merge(ordered, *rest), "mamba_block_size": ordered[-1].mamba_block_size}

    monkeypatch.setattr("staticfire.engine.ready.settle.merge", last_wins)
    code, findings = sync("--data-parallel-size", "2")
    assert code == 1
    assert holders(findings["runtime.mamba_block_size"])["front end"] is None


def test_without_that_merge_the_front_end_keeps_the_value_and_only_the_engines_own_entry_is_wrong(sync, monkeypatch):
    plant_in_settle(
        monkeypatch,
        lambda response: structs.replace(response, mamba_block_size=None) if response.engine_index == 1 else response,
    )
    code, findings = sync("--data-parallel-size", "2")
    assert code == 1
    held = holders(findings["runtime.mamba_block_size"])
    assert (held["front end"], held["front end on engine 0"], held["front end on engine 1"]) == (80, 80, None)


def faulty_ranks(monkeypatch) -> None:
    monkeypatch.setitem(ranks.ProcessExecutor.__init__.__kwdefaults__, "entry", "faulty_rank:main")


def test_a_rank_with_another_block_count_keeps_the_engine_from_starting(capsys, monkeypatch):
    faulty_ranks(monkeypatch)
    assert main(["sync", "--engine", "reference", "jamba-tiny-grow", "--tensor-parallel-size", "2"]) == 2
    error = capsys.readouterr().err
    assert "runtime.num_gpu_blocks is 15361 on rank 0, 15360 on rank 1" in error


def test_a_rank_with_another_block_count_is_seen_even_where_nobody_compares_ranks(sync, monkeypatch):
    faulty_ranks(monkeypatch)
    monkeypatch.setattr(ranks, "disagreements", lambda configs: [])
    code, findings = sync("--tensor-parallel-size", "2")
    assert code == 1
    assert set(findings) == {"runtime.num_gpu_blocks"}
    finding = findings["runtime.num_gpu_blocks"]
    assert finding["message"] == "runtime.num_gpu_blocks: worker 0.1 has 15360, should have 15361"


def test_a_metric_of_the_resolved_value_instead_of_the_settled_one(sync, monkeypatch):
    """vLLM #42966: the metric says 16 while the engine runs with 80."""
    monkeypatch.setattr(
        collector,
        "cache_config_labels",
        lambda config: {n: str(v) for n, v in (asdict(config.runtime) | asdict(config.cache)).items() if v is not None},
    )
    code, findings = sync()
    assert code == 1
    assert holders(findings["runtime.block_size"])["metrics of engine 0"] == 16


def test_a_metric_of_none(sync, monkeypatch):
    """vLLM #15755: the label is there, and says None."""
    right = collector.cache_config_labels
    monkeypatch.setattr(collector, "cache_config_labels", lambda config: {**right(config), "num_gpu_blocks": "None"})
    code, findings = sync()
    assert code == 1
    assert holders(findings["runtime.num_gpu_blocks"])["metrics of engine 0"] == "None"


def test_a_fitted_length_is_in_step(sync):
    code, findings = sync("--max-model-len", "-1", "--num-gpu-blocks-override", "12", "--enable-multiprocessing")
    assert (code, findings) == (0, {})


def test_a_fitted_length_that_stays_in_the_engine(sync, monkeypatch):
    """vLLM #39102: the front end goes on admitting what does not fit."""
    plant_in_settle(monkeypatch, lambda response: structs.replace(response, max_model_len=UNSET))
    code, findings = sync("--max-model-len", "-1", "--num-gpu-blocks-override", "12", "--enable-multiprocessing")
    assert code == 1
    assert {"model.max_model_len", "scheduler.max_model_len", "runtime.max_model_len"} <= set(findings)
    held = holders(findings["scheduler.max_model_len"])
    assert held["front end"] > held["engine core 0"]
