"""Every configuration field has a decided way to travel; one that is added without one fails here."""

from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ready_answers import resolved
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig, Runtime
from staticfire.engine.config.rules.examples import MODELS, example_model
from staticfire.engine.ready.response import STAYS, TABLE, Merge, ReadyResponse
from staticfire.engine.worker.settle import settle_worker

SECTIONS = {field.name: field.type for field in fields(EngineConfig)}
PATHS = [f"{section}.{field.name}" for section, kind in SECTIONS.items() for field in fields(kind)]  # type: ignore[arg-type]
TRAVELLING = [target for travels in TABLE.values() for target in travels.targets]
HOW = (
    "declare it in ReadyResponse (engine/ready/response.py) with where it comes from and how engines merge, "
    "or, where no worker ever changes it, in STAYS with the reason"
)


@pytest.mark.parametrize("path", PATHS)
def test_every_field_travels_or_stays(path):
    assert (path in TRAVELLING) + (path in STAYS) == 1, f"{path}: how does it travel? {HOW}"


@pytest.mark.parametrize("name", [field.name for field in fields(Runtime)])
def test_every_run_time_value_travels(name):
    assert f"runtime.{name}" in TRAVELLING, f"{name} is settled by the worker: {HOW}"
    assert TABLE[name].source == f"runtime.{name}"


def test_nothing_travels_into_the_void():
    assert set(TRAVELLING) | set(STAYS) == set(PATHS)
    assert len(TRAVELLING) == len(set(TRAVELLING)), "two fields of the response settle one value"


def test_every_field_of_the_response_is_in_the_table():
    assert set(ReadyResponse.__struct_fields__) == {"engine_index", *TABLE}


def test_a_least_value_has_a_bound_in_the_resolved_configuration():
    for name, travels in TABLE.items():
        if travels.merge is Merge.MINIMUM:
            assert travels.also, name
            assert all(path.partition(".")[0] in {f.name for f in fields(ResolvedConfig)} for path in travels.also)


SOUND = sorted(name for name in MODELS if example_model(name).quant_method is None)


@given(
    model=st.sampled_from(SOUND),
    block_size=st.sampled_from([16, 32, 48, 256]),
    caching=st.booleans(),
    length=st.integers(1, 2048),
)
def test_a_worker_changes_nothing_that_does_not_travel(model, block_size, caching, length):
    config = resolved(model, block_size=block_size, enable_prefix_caching=caching, max_model_len=length)
    engine = settle_worker(config)
    changed = [path for path in PATHS if not path.startswith("runtime.") and _at(config, path) != _at(engine, path)]
    assert set(changed) <= set(TRAVELLING)


def _at(config: ResolvedConfig, path: str) -> object:
    section, _, field = path.partition(".")
    return getattr(getattr(config, section), field)
