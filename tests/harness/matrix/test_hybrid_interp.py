"""The matrix for Triton's interpreter: few cells, and each way in which an op is used in one of them."""

import pytest

from staticfire.engine.config import accept, model_info
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.matrix import load
from staticfire.harness.matrix.compare import compare
from staticfire.harness.models import catalog
from staticfire.harness.probe.reference import ReferenceProbe


@pytest.fixture(scope="module")
def cells():
    return load("hybrid-interp").cells()


def settled(cell):
    found = catalog.find(cell.model)
    return settle_worker(accept(cell.config, model_info(found.hf, found.name)))


def test_it_is_small(cells):
    assert 1 <= len(cells) <= 6
    assert {(cell.workload.prompts, cell.workload.max_tokens) for cell in cells} == {("around-a-block", 8)}


def test_the_engine_accepts_every_cell_on_either_backend(cells):
    assert compare(cells, ReferenceProbe()) == ()
    for cell in cells:
        moved = accept({**cell.config, "kernel_backend": "triton"}, settled(cell).model.info)
        assert moved.kernel.backend == "triton"


def test_every_way_in_which_an_op_is_used_has_a_cell(cells):
    assert {cell.model for cell in cells} == {"jamba-tiny", "jamba-tiny-grow", "llama-tiny"}
    configs = [settled(cell) for cell in cells]
    assert any(config.runtime.block_size > config.cache.block_size for config in configs), "a block grows"
    assert any(config.quantization.method == "experts_int8" for config in configs)
    assert any(config.cache.mamba_cache_mode == "align" for config in configs), "states are copied"
    assert {config.model.dtype for config in configs} == {"float32", "float64", "bfloat16"}
    hybrid = [config for config in configs if config.model.info.recurrent_layers]
    shares = [config.scheduler.max_num_batched_tokens / config.runtime.block_size for config in hybrid]
    assert min(shares) < 2, "prompts are cut"
    assert max(shares) > 2, "both in one step"
