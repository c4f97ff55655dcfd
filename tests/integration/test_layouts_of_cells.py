"""Law 6 over the matrix: after ready the front end's configuration is each engine's, whatever the layout.

Toy workers settle by the real arithmetic in real processes, so every cell can be asked; real ones are started for a
few, and for all of them by night.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import fields
from typing import Any

import pytest

import toy_core
from staticfire.engine.client.base import Client
from staticfire.engine.client.make import make_client
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import ResolvedConfig, Runtime
from staticfire.engine.loader.index import read_hf_config
from staticfire.engine.view import flatten
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.matrix.matrix import load
from staticfire.harness.models import catalog
from staticfire.harness.models.make import ensure

pytestmark = pytest.mark.timeout(240)

LAYOUTS: dict[str, dict[str, Any]] = {
    "in process": {"enable_multiprocessing": False, "tensor_parallel_size": 1, "data_parallel_size": 1},
    "separate": {"enable_multiprocessing": True, "tensor_parallel_size": 1, "data_parallel_size": 1},
    "tp2": {"enable_multiprocessing": False, "tensor_parallel_size": 2, "data_parallel_size": 1},
    "dp2": {"enable_multiprocessing": True, "tensor_parallel_size": 1, "data_parallel_size": 2},
}
ADDED_UP = {"num_gpu_blocks", "kv_cache_size_tokens", "kv_cache_max_concurrency"}
"""What the front end shows of several engines together."""

CELLS = [cell for cell in load("hybrid").cells() if cell.verdict == "valid"]


def parameters(cells: Iterable[Cell], layouts: Iterable[str]) -> list[Any]:
    return [pytest.param(cell, layout, id=f"{cell.id}-{layout}") for cell in cells for layout in layouts]


def in_layout(cell: Cell, layout: str) -> dict[str, Any]:
    return {**cell.config, **LAYOUTS[layout]}


def assert_all_agree(client: Client, resolved: ResolvedConfig) -> None:
    engines = range(resolved.parallel.data_parallel_size)
    assert list(client.engine_configs) == list(engines)
    assert not any(client.unreported.values())
    views = client.views()
    for engine in engines:
        known = flatten(client.engine_configs[engine])
        held = [view for view in views if view.engine == engine and view.role != "front end"]
        assert len(held) == 1 + resolved.parallel.tensor_parallel_size
        for view in held:
            assert view.fields == known, view.holder
    assert_merged(client, [flatten(client.engine_configs[engine]) for engine in engines])


def assert_merged(client: Client, engines: list[Mapping[str, Any]]) -> None:
    """Written out here once more, apart from the table that the engine reads."""
    own = flatten(client.config)
    assert {name.removeprefix("runtime.") for name in own if name.startswith("runtime.")} == {
        field.name for field in fields(Runtime)
    }
    for name, value in own.items():
        values = [engine[name] for engine in engines]
        if name.removeprefix("runtime.") in ADDED_UP:
            assert value == sum(values), name
        else:
            assert {value} == set(values), name


@pytest.mark.parametrize(("cell", "layout"), parameters(CELLS[::12], ["separate", "dp2"]))
def test_toy_workers(cell: Cell, layout: str):
    resolved = accept(in_layout(cell, layout), model_info(catalog.load(cell.model).config, cell.model))
    with closing(ProcessClient(resolved, entry="toy_core:main")) as client:
        assert_all_agree(client, resolved)


def real(cell: Cell, layout: str) -> None:
    folder = ensure(cell.model)
    resolved = accept(in_layout(cell, layout), model_info(read_hf_config(folder), str(folder)), for_running=True)
    before = toy_core.family()  # whatever earlier tests of this process left running is theirs
    with closing(make_client(resolved)) as client:
        assert_all_agree(client, resolved)
    assert not toy_core.family() - before


@pytest.mark.engine
@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "layout"),
    [parameter for n, name in enumerate(LAYOUTS) for parameter in parameters([CELLS[9 * n]], [name])],
)
def test_real_workers_of_a_few_cells(cell: Cell, layout: str):
    real(cell, layout)


@pytest.mark.engine
@pytest.mark.nightly
@pytest.mark.parametrize(("cell", "layout"), parameters(CELLS, LAYOUTS))
def test_real_workers_of_every_cell(cell: Cell, layout: str):
    real(cell, layout)
