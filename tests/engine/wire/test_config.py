"""A configuration arrives as it was sent, whatever it holds; anything else is an error of the wire."""

import json
from dataclasses import fields, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ready_answers import resolved, settled
from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.config.rules.examples import MODELS, example_model
from staticfire.engine.errors import WireError
from staticfire.engine.wire.config import MAX_BYTES, decode_config, decode_engine_config, encode_config
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.matrix.compare import every_combination
from staticfire.harness.matrix.matrix import load
from staticfire.harness.models import catalog

SOUND = sorted(name for name in MODELS if example_model(name).quant_method is None)


def sent(config: ResolvedConfig) -> ResolvedConfig:
    return decode_config(encode_config(config))


@pytest.mark.parametrize("model", SOUND)
def test_every_family_arrives(model):
    config, engine = resolved(model), settled(model)
    assert sent(config) == config
    assert type(sent(config)) is ResolvedConfig
    assert sent(engine) == engine
    assert decode_engine_config(encode_config(engine)) == engine


def test_every_cell_of_the_matrix_arrives_and_settles_alike():
    cells = [cell for cell in every_combination(load("hybrid").document) if cell.verdict == "valid"]
    assert len(cells) > 1000
    models = {name: model_info(catalog.find(name).hf, name) for name in {cell.model for cell in cells}}
    for cell in cells[::5]:
        config = accept(cell.config, models[cell.model])
        there = sent(config)
        assert there == config, cell.id
        engine = settle_worker(there)
        assert engine == settle_worker(config), cell.id
        assert sent(engine) == engine, cell.id


@given(
    seed=st.integers(0, 2**64 - 1),
    length=st.integers(1, 2**63 - 1),
    memory=st.integers(0, 2**200),
    concurrency=st.floats(0, allow_infinity=False, allow_nan=False),
    name=st.text(),
    rank=st.none() | st.integers(0, 2**63 - 1),
)
def test_any_values_arrive(seed, length, memory, concurrency, name, rank):
    config = settled()
    config = replace(
        config,
        model=replace(config.model, model=name, max_model_len=length, seed=seed),
        cache=replace(config.cache, kv_cache_memory_bytes=memory),
        parallel=replace(config.parallel, data_parallel_rank=rank),
        runtime=replace(config.runtime, kv_cache_max_concurrency=concurrency),
    )
    assert sent(config) == config


def test_a_config_json_keeps_its_infinity():
    """Mamba-2 checkpoints limit the time step to [0, Infinity], and nothing may turn that into null."""
    hf = {**MODELS["bamba"], "time_step_limit": [0.0, float("inf")], "huge": 10**40, "half": "\ud800"}
    config = accept({}, model_info(hf, "bamba"))
    there = sent(config)
    assert there == config
    assert there.model.info.hf["time_step_limit"] == [0.0, float("inf")]


def test_a_name_that_is_no_text_is_refused_where_it_is_typed():
    config = resolved()
    with pytest.raises(WireError, match="cannot be sent"):
        encode_config(replace(config, model=replace(config.model, model="/models/\udcff")))


def test_each_field_is_on_the_wire():
    plain = msgspec.json.decode(encode_config(settled()))
    assert plain.keys() == {field.name for field in fields(EngineConfig)}
    for field in fields(EngineConfig):
        names = {inner.name for inner in fields(getattr(settled(), field.name))}
        assert plain[field.name].keys() == (names - {"info"} | {"name", "hf"} if field.name == "model" else names)


def damaged(section, field, value):
    """A configuration with one value replaced on the wire; `...` takes it out."""
    plain = msgspec.json.decode(encode_config(settled()))
    if value is ...:
        del plain[section][field]
    else:
        plain[section][field] = value
    return msgspec.json.encode(plain)


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        ("cache", "block_size", "16"),
        ("cache", "block_size", ...),
        ("cache", "mamba_cache_mode", "some"),
        ("model", "dtype", "float8"),
        ("model", "hf", "{"),
        ("model", "hf", "[]"),
        ("model", "hf", "[" * 100_000),
        ("model", "hf", json.dumps({"model_type": "nobody"})),
        ("model", "name", None),
        ("runtime", "page_size_bytes", ...),
        ("scheduler", "of_a_newer_version", 1),
        ("device", "capability", [1, 2, 3]),
    ],
)
def test_damage_is_an_error_of_the_wire(section, field, value):
    with pytest.raises(WireError, match="cannot be read"):
        decode_config(damaged(section, field, value))


@given(data=st.binary(max_size=300))
def test_garbage_is_an_error_of_the_wire(data):
    with pytest.raises(WireError):
        decode_config(data)


def test_a_truncated_configuration_is_refused_wherever_it_ends():
    data = encode_config(settled())
    for end in range(0, len(data), 7):
        with pytest.raises(WireError):
            decode_config(data[:end])


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 100 * 2**20])
def test_a_huge_configuration_is_refused_unread(size):
    with pytest.raises(WireError, match=f"{size} bytes is refused"):
        decode_config(bytes(size))


def test_what_no_worker_settled_is_not_taken_for_it():
    with pytest.raises(WireError, match="without run-time values"):
        decode_engine_config(encode_config(resolved()))
