"""The same requests in every process layout: the same tokens, errors and configuration."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import toy_core
from staticfire.engine.errors import CheckpointError, EngineDeadError, EngineError, RequestError
from staticfire.engine.exchange import FinishedRequest
from staticfire.engine.llm import LLM
from staticfire.engine.observer import Observer
from staticfire.engine.sampling_params import SamplingParams

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(240)]

COMMON: dict[str, Any] = {"dtype": "float64", "max_model_len": 256, "max_num_batched_tokens": 64}
LAYOUTS: dict[str, dict[str, Any]] = {
    "separate": {"enable_multiprocessing": True},
    "tp2": {"tensor_parallel_size": 2},
    "dp2": {"data_parallel_size": 2},
    "tp2 of dp2": {"tensor_parallel_size": 2, "data_parallel_size": 2},
}
PROMPTS = [[3 + (7 * n + k * k) % 500 for k in range(1 + 11 * n)] for n in range(9)]
PARAMS = [
    *(SamplingParams(max_tokens=9, ignore_eos=True, logprobs=2, prompt_logprobs=1) for _ in PROMPTS[:4]),
    *(SamplingParams(max_tokens=6, ignore_eos=True, temperature=1.3, seed=10**25 + n) for n in range(3)),
    *(SamplingParams(forced_token_ids=(5, 6, 7), logprobs=0) for _ in range(2)),
]


@pytest.fixture(scope="module")
def here(jamba: Path) -> Iterator[LLM]:
    with LLM(jamba, **COMMON) as llm:
        yield llm


@pytest.fixture(scope="module", params=LAYOUTS)
def there(jamba: Path, request: pytest.FixtureRequest) -> Iterator[LLM]:
    with LLM(jamba, **COMMON, **LAYOUTS[request.param]) as llm:
        yield llm
        assert llm.client.dead() == {}


@pytest.fixture
def separate(jamba: Path) -> Iterator[LLM]:
    with LLM(jamba, **COMMON, enable_multiprocessing=True) as llm:
        yield llm


def test_equal_tokens_and_logprobs(here: LLM, there: LLM):
    """Law 1, in float64: equal tokens, log-probabilities within 1e-9."""
    for a, b in zip(here.generate(PROMPTS, PARAMS), there.generate(PROMPTS, PARAMS), strict=True):
        assert a.prompt_token_ids == b.prompt_token_ids
        assert a.outputs[0].token_ids == b.outputs[0].token_ids
        assert a.outputs[0].finish_reason == b.outputs[0].finish_reason
        for left, right in ((a.outputs[0].logprobs, b.outputs[0].logprobs), (a.prompt_logprobs, b.prompt_logprobs)):
            assert (left is None) == (right is None)
            for x, y in zip(left or [], right or [], strict=True):
                assert (x is None) == (y is None)
                if x is not None and y is not None:
                    assert (x.token_id, x.argmax) == (y.token_id, y.argmax)
                    assert abs(x.logprob - y.logprob) < 1e-9


def test_requests_are_refused_alike(here: LLM, there: LLM):
    bad: list[Any] = [[[], [1] * 256, [512], [-1], [1]], [None], [b"bytes"], [[1, None]]]
    for prompts in bad:
        errors = []
        for llm in (here, there):
            with pytest.raises(RequestError) as caught:
                llm.generate(prompts, request_ids=[f"id {n}" for n in range(len(prompts))])
            errors.append(str(caught.value))
        assert errors[0] == errors[1]


def test_every_holder_has_the_same_configuration(there: LLM):
    views = there.client.views()
    parallel = there.config.parallel
    workers = [view for view in views if view.role == "worker"]
    assert len(workers) == parallel.tensor_parallel_size * parallel.data_parallel_size
    for engine, known in there.client.engine_configs.items():
        held = [view.fields for view in views if view.engine == engine]
        assert len(held) == 2 + parallel.tensor_parallel_size
        assert all(fields == held[0] for fields in held)
        assert known.runtime.num_gpu_blocks * parallel.data_parallel_size == there.config.runtime.num_gpu_blocks


def test_no_process_has_shared_memory(there: LLM):
    there.generate([[1, 2]], SamplingParams(max_tokens=2))
    for process in toy_core.family():
        mapped = [entry.path for entry in process.memory_maps(grouped=True)]
        assert not [path for path in mapped if path.startswith("/dev/shm")]


def test_a_front_end_alone_imports_no_torch(jamba: Path):
    import subprocess

    code = (
        "import sys; from staticfire.engine.llm import LLM\n"
        f"with LLM({str(jamba)!r}, enable_multiprocessing=True) as llm: print(len(llm.generate([[5, 6]])))\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["1", "False"]


def test_observers_and_the_core_are_of_this_process_only(separate: LLM, jamba: Path):
    with pytest.raises(EngineError, match=r"the engine core is not in this process"):
        _ = separate.core
    layouts: list[dict[str, Any]] = [{"enable_multiprocessing": True}, {"data_parallel_size": 2}]
    for layout in layouts:
        with pytest.raises(EngineError, match=r"an observer watches the steps of an engine in its own process"):
            LLM(jamba, observer=Observer(), **layout)


def test_a_broken_checkpoint_is_the_same_error(jamba: Path, tmp_path: Path):
    import shutil

    folder = Path(shutil.copytree(jamba, tmp_path / "model"))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    messages = []
    layouts: list[dict[str, Any]] = [{}, {"enable_multiprocessing": True}]
    for layout in layouts:
        with pytest.raises(CheckpointError) as caught:
            LLM(folder, **layout)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_a_death_names_the_prompts_and_keeps_what_was_finished(jamba: Path, monkeypatch: pytest.MonkeyPatch):
    with LLM(jamba, **COMMON, enable_multiprocessing=True) as llm:
        pid = llm.client.link.engines[0].child.pid  # type: ignore[attr-defined]
        prompts = [[5, 6], [7, 8], [9, 10]]
        params = [SamplingParams(max_tokens=n, ignore_eos=True) for n in (1, 240, 240)]
        step = llm.client.step

        def kill_when_first_is_done() -> list[FinishedRequest]:
            finished = step()
            if finished:
                os.kill(pid, signal.SIGKILL)
            return finished

        monkeypatch.setattr(llm.client, "step", kill_when_first_is_done)
        with pytest.raises(EngineDeadError) as caught:
            llm.generate(prompts, params)
        assert "prompts 1, 2 are lost; the outputs of the other 1 are in this error's `outputs`" in str(caught.value)
        assert f"engine core 0 (pid {pid}): killed by SIGKILL" in str(caught.value)
        assert [output.prompt_token_ids for output in caught.value.outputs] == [[5, 6]]
        with pytest.raises(EngineDeadError, match=r"no engine is left"):
            llm.generate(prompts)


def test_the_other_engine_goes_on_and_its_outputs_are_kept(jamba: Path):
    with LLM(jamba, **COMMON, data_parallel_size=2) as llm:
        pid = llm.client.link.engines[1].child.pid  # type: ignore[attr-defined]
        psutil.Process(pid).suspend()
        timer = threading.Timer(0.5, os.kill, [pid, signal.SIGKILL])
        timer.start()
        with pytest.raises(EngineDeadError, match=r"prompts 1, 3 are lost") as caught:
            llm.generate([[n] for n in range(5, 10)], SamplingParams(max_tokens=4, ignore_eos=True))
        timer.join()
        assert [output.prompt_token_ids for output in caught.value.outputs] == [[5], [7], [9]]
        assert len(llm.generate([[5]] * 4)) == 4
