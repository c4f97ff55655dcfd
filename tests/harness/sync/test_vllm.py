"""The audit of a vLLM: its agent in another interpreter, on a small package of vLLM's shape with its own processes."""

import json
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.sync.base import Audit, Held
from staticfire.harness.sync.compare import NO_ROAD, audit
from staticfire.harness.sync.vllm.engine import VllmEngine, seen

TOY = Path(__file__).resolve().parents[2] / "support" / "toy_served_vllm"


@pytest.fixture
def model(tmp_path: Path) -> str:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "jamba"}))
    return str(tmp_path)


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(TOY))
    monkeypatch.delenv("TOY_FAULT", raising=False)


def look(model: str, *, limit: float = 120, **typed: Any) -> Audit:
    return audit(VllmEngine(sys.executable, limit).look(model, typed), "toy")


def test_everyone_is_asked_and_agrees(toy, model):
    found = look(model, tensor_parallel_size=2)
    assert found.engine == "vllm 0.33.0+toy"
    assert found.holders == ("front end", "engine core 0", "worker 0.0", "worker 0.1", "metrics of engine 0")
    assert found.findings == ()
    assert found.notes == ()
    assert found.fields > 5


def test_a_value_that_the_response_does_not_carry_is_found(toy, model, monkeypatch):
    monkeypatch.setenv("TOY_FAULT", "stale")
    (finding,) = look(model).findings
    assert finding.field == "cache.mamba_block_size"
    assert finding.held == (
        Held(("engine core 0", "worker 0.0"), 528),
        Held(("front end",), None),
        Held(("metrics of engine 0",), "None"),
    )
    assert finding.travels == NO_ROAD


def test_a_rank_that_disagrees_is_found(toy, model, monkeypatch):
    monkeypatch.setenv("TOY_FAULT", "rank")
    (finding,) = look(model, tensor_parallel_size=2).findings
    assert finding.message == "cache.num_gpu_blocks: worker 0.1 has 510, should have 512"
    assert "ready response, field num_gpu_blocks" in finding.travels


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("no-device", "vLLM 0.33.0.toy in .* could not be looked at here: .*no device here"),
        ("refuses", "ValueError: tensor_parallel_size must divide 4$"),
        ("dies", "Engine core initialization failed.*the core fell over"),
    ],
)
def test_what_cannot_be_looked_at_is_one_line(toy, model, monkeypatch, fault, message):
    monkeypatch.setenv("TOY_FAULT", fault)
    with pytest.raises(InputError, match=message) as caught:
        look(model)
    assert "\n" not in str(caught.value)


def test_an_engine_that_hangs_is_given_up_and_leaves_no_process(toy, model, monkeypatch):
    monkeypatch.setenv("TOY_FAULT", "hangs")
    with pytest.raises(InputError, match="did not answer within 2 s"):
        look(model, limit=2)
    assert not [
        child for child in psutil.Process().children(recursive=True) if "staticfire_sync" in str(child.cmdline())
    ]


def test_without_vllm_it_is_one_line(model, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(InputError, match="No module named 'vllm'"):
        look(model)


def test_an_interpreter_that_is_none_is_one_line(model):
    with pytest.raises(InputError, match="cannot be started"):
        VllmEngine("/no/such/python").look(model, {})


def test_an_interpreter_that_only_fails_is_one_line(model):
    with pytest.raises(InputError, match="vLLM ended with 1"):
        VllmEngine("/bin/false").look(model, {})


def told(**more: Any) -> dict[str, Any]:
    config = {"cache.block_size": 528, "cache.sliding_window": None}
    page = 'vllm:cache_config_info{block_size="528",sliding_window="None",_private="1",engine="0"} 1.0\n'
    base = {"version": "9", "front_end": config, "core": config, "workers": [config], "metrics": page, "ready": []}
    return base | more


def test_vllms_way_to_write_none_is_no_difference():
    assert audit(seen(told()), "toy").findings == ()


def test_without_metrics_it_is_said():
    found = audit(seen(told(metrics="")), "toy")
    assert found.findings == ()
    assert "not compared" in found.notes[0]


def test_a_none_where_the_core_has_a_value_is_found():
    (finding,) = audit(seen(told(metrics=told()["metrics"].replace("528", "None"))), "toy").findings
    assert Held(("metrics of engine 0",), "None") in finding.held
