"""Real engines, in this process and in others: the front end has what the workers settled, and admits by it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from staticfire.engine.config import accept, model_info
from staticfire.engine.errors import RequestError
from staticfire.engine.llm import LLM
from staticfire.engine.loader.index import read_hf_config
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models.make import ensure

pytestmark = [pytest.mark.engine, pytest.mark.slow]

LAYOUTS: dict[str, dict[str, Any]] = {
    "in process": {},
    "separate": {"enable_multiprocessing": True},
    "tp2": {"tensor_parallel_size": 2},
    "dp2": {"data_parallel_size": 2},
}


@pytest.fixture(scope="module")
def grow() -> Path:
    return ensure("jamba-tiny-grow")


@pytest.fixture(params=LAYOUTS, scope="module")
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def typed(layout: str) -> dict[str, Any]:
    return {"max_model_len": -1, "num_gpu_blocks_override": 12, "max_num_seqs": 2, **LAYOUTS[layout]}


@pytest.fixture(scope="module")
def llm(grow: Path, typed: dict[str, Any]) -> Iterator[LLM]:
    with LLM(grow, **typed) as made:
        yield made


@pytest.mark.timeout(240)
def test_the_front_end_has_what_the_engines_have(llm: LLM, grow: Path, typed: dict[str, Any], layout: str) -> None:
    """Foreseen by arithmetic here, settled by workers there; several engines add their pools up."""
    foreseen = settle_worker(accept(typed, model_info(read_hf_config(grow), str(grow))))
    engines = 2 if layout == "dp2" else 1
    runtime = llm.config.runtime
    assert foreseen.runtime.block_size > foreseen.cache.block_size, "the model must make its blocks grow"
    assert (runtime.block_size, runtime.mamba_block_size) == (
        foreseen.runtime.block_size,
        foreseen.runtime.mamba_block_size,
    )
    assert runtime.num_gpu_blocks == engines * foreseen.runtime.num_gpu_blocks
    assert runtime.max_model_len == foreseen.runtime.max_model_len
    if engines == 1:
        assert llm.config == foreseen


@pytest.mark.timeout(240)
def test_the_fitted_length_limits_what_is_admitted(llm: LLM) -> None:
    length = llm.config.model.max_model_len
    assert length < llm.config.model.info.max_position_embeddings
    params = SamplingParams(max_tokens=4, ignore_eos=True)
    with pytest.raises(RequestError, match=f"max_model_len={length}"):
        llm.generate([[1] * length], params)
    [output] = llm.generate([[1] * (length - 4)], params)
    assert len(output.outputs[0].token_ids) == 4
