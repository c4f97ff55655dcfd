"""What became of every value, and how it is shown."""

from dataclasses import replace
from typing import Any

from staticfire.engine.config import accept, model_info, resolve
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models import catalog
from staticfire.harness.start.table import UNSET, Row, as_json, rows
from staticfire.harness.start.text import render


def table(engines: int = 1, **typed: Any) -> tuple[tuple[Row, ...], EngineConfig]:
    info = model_info(catalog.find("jamba-tiny-grow").hf, "jamba-tiny-grow")
    config = settle_worker(accept(typed, info))
    return rows(typed, resolve(typed, info).values, dict.fromkeys(range(engines), config)), config


def row(found: tuple[Row, ...], field: str) -> Row:
    (one,) = [row for row in found if row.field == field]
    return one


def test_a_value_is_followed_from_the_command_line_into_the_engines():
    found, _ = table(2, block_size=32, kv_cache_dtype="auto")
    size = row(found, "cache.block_size")
    assert (size.typed, size.resolved, size.source, size.settled) == (32, 32, "typed", {0: 96, 1: 96})
    assert size.changed
    dtype = row(found, "cache.cache_dtype")
    assert (dtype.typed, dtype.resolved, dtype.source, dtype.settled) == (
        "auto",
        "float32",
        "derived",
        {0: "float32", 1: "float32"},
    )
    assert not dtype.changed
    mode = row(found, "cache.mamba_cache_mode")
    assert (mode.typed, mode.resolved) == (UNSET, "align")


def test_what_only_a_worker_knows_has_nothing_before():
    found, config = table()
    page = row(found, "runtime.page_size_bytes")
    assert (page.typed, page.resolved, page.settled) == (UNSET, UNSET, {0: config.runtime.page_size_bytes})
    assert not page.changed
    assert [r.field for r in found].count("runtime.block_size") == 0  # shown as what became of cache.block_size


def test_engines_that_differ_are_shown_one_by_one():
    typed: dict[str, Any] = {}
    _, config = table(**typed)
    other = replace(config, runtime=replace(config.runtime, num_gpu_blocks=7))
    info = config.model.info
    found = rows(typed, resolve(typed, info).values, {0: config, 1: other})
    assert not row(found, "runtime.num_gpu_blocks").uniform
    assert f"engine 0: {config.runtime.num_gpu_blocks}, engine 1: 7" in render(found)


def test_columns_stand_under_one_another():
    lines = render(table(block_size=16)[0]).splitlines()
    settled = lines[0].index("settled")
    (block,) = [line for line in lines if line.startswith("cache.block_size")]
    assert block.split() == ["cache.block_size", "16", "16", "typed", "80"]
    assert block[settled:] == "80"
    assert {len(line) - len(line.rstrip()) for line in lines} == {0}


def test_json_leaves_out_stages_without_a_value():
    found, config = table(block_size=16)
    assert as_json(row(found, "cache.block_size")) == {
        "field": "cache.block_size",
        "typed": 16,
        "resolved": 16,
        "source": "typed",
        "settled": {"0": 80},
    }
    assert as_json(row(found, "runtime.state_bytes")) == {
        "field": "runtime.state_bytes",
        "settled": {"0": config.runtime.state_bytes},
    }
