"""Weights stay for the next test of a process, and nothing else does."""

import gc
import shutil
import weakref
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given, settings

from staticfire.engine.exchange import NewRequest
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.stats import Distribution
from staticfire.engine.worker.runner import ModelRunner
from staticfire.harness.models.make import ensure
from staticfire.harness.plugin import hf_runner, runner
from staticfire.harness.plugin import strategies as sf
from staticfire.harness.plugin.engines.reference import SHELF
from staticfire.harness.plugin.runner import VllmRunner

pytestmark = pytest.mark.engine
PLAIN: dict[str, Any] = {"max_model_len": 64, "enable_chunked_prefill": None, "dtype": "float32"}
MODEL = "jamba-tiny"
PARAMS = SamplingParams(temperature=1.0, max_tokens=4, logprobs=2, prompt_logprobs=1)


@pytest.fixture(autouse=True)
def empty_shelf():
    runner.release()
    hf_runner.release()
    yield
    runner.release()
    hf_runner.release()


def loads():
    return len(SHELF.loads)


def answers(typed, prompts):
    """All that a test can see of an engine, and what the engine counted."""
    with VllmRunner.as_typed(MODEL, **typed) as engine:
        found = [*engine.generate_w_logprobs(prompts, PARAMS), *engine.generate_w_logprobs(prompts, PARAMS)]
        return repr(found), counters(engine)


def counters(engine):
    """What the engine counted, but for seconds."""
    counted = msgspec.structs.asdict(engine.llm.client.stats()[0])
    return {name: value for name, value in counted.items() if not isinstance(value, Distribution)}


def inline(**more):
    return sf.configurations("hybrid", model=MODEL, quantization="unset", dtype="float32", **more)


IN_PROCESS = {"data_parallel_size": "unset", "tensor_parallel_size": "unset", "enable_multiprocessing": "unset"}


@given(before=inline(**IN_PROCESS), after=inline(**IN_PROCESS), prompts=sf.prompt_families(longest=40))
@settings(max_examples=12)
def test_what_ran_before_is_not_seen(before, after, prompts):
    runner.release()
    alone = answers(after[1], prompts)
    runner.release()
    count = loads()
    with VllmRunner.as_typed(MODEL, **before[1]) as engine:
        engine.generate_greedy(prompts, 3)
    assert answers(after[1], prompts) == alone
    assert loads() == count + 1, "the weights were not kept"


def test_counters_and_the_prefix_cache_begin_anew():
    prompt = list(range(3, 40))
    for _ in range(3):
        with VllmRunner(MODEL, **PLAIN, enable_prefix_caching=True) as engine:
            engine.generate_greedy([prompt], 2)
            engine.generate_greedy([prompt], 2)
    with VllmRunner(MODEL, **PLAIN, enable_prefix_caching=True) as engine:
        assert not any(value for name, value in counters(engine).items() if name != "kv_cache_usage")
        outputs = [engine.llm.generate([prompt])[0].stats.num_cached_tokens for _ in range(2)]
    assert outputs[0] == 0 < outputs[1]


@pytest.mark.parametrize("how", ["request left", "weights changed", "step failed"])
def test_after_a_test_that_broke_something_the_weights_are_read_again(how, monkeypatch):
    prompt = list(range(3, 30))
    with VllmRunner(MODEL, **PLAIN) as engine:
        right = engine.generate_greedy([prompt], 4)
    count = loads()
    with VllmRunner(MODEL, **PLAIN) as engine:
        if how == "request left":
            engine.get_llm().core.add([NewRequest("left", prompt, SamplingParams(max_tokens=4))])
        elif how == "weights changed":
            engine.llm.core.runner.model.layers[0].input_norm.zero_()
            assert engine.generate_greedy([prompt], 4) != right
        else:
            monkeypatch.setattr(ModelRunner, "execute", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                engine.generate_greedy([prompt], 4)
            monkeypatch.undo()
    assert loads() == count, "the one before was kept"
    with VllmRunner(MODEL, **PLAIN) as engine:
        assert engine.generate_greedy([prompt], 4) == right
        assert loads() == count + 1
        assert not engine.llm.core.unfinished()


def test_two_engines_at_once_have_weights_of_their_own():
    with VllmRunner(MODEL, **PLAIN) as engine:
        engine.generate_greedy(["x"], 1)
    with VllmRunner(MODEL, **PLAIN) as one, VllmRunner(MODEL, **PLAIN) as other:
        assert one.llm.core.runner.model is not other.llm.core.runner.model


def test_a_checkpoint_that_was_changed_is_read_again(tmp_path):
    folder = shutil.copytree(ensure("jamba-tiny"), tmp_path / "model")
    prompt = list(range(3, 30))

    def tokens():
        with VllmRunner(str(folder), **PLAIN) as engine:
            return engine.generate_greedy([prompt], 8)

    before = tokens()
    assert tokens() == before
    count = loads()
    config = (folder / "config.json").read_text()
    changed = config.replace('"rms_norm_eps": 1e-06', '"rms_norm_eps": 10.0')
    assert changed != config
    (folder / "config.json").write_text(changed)
    assert tokens() != before
    assert loads() == count + 1


def test_one_model_is_kept_without_its_caches_and_goes_with_the_session():
    with VllmRunner(MODEL, **PLAIN) as engine:
        engine.generate_greedy(["x"], 1)
        inside: Any = engine._engine  # not by `llm`, which would make them the test's own
        caches = [weakref.ref(tensor) for tensor in tensors(inside._llm.core.runner.caches)]
        model = weakref.ref(inside._llm.core.runner.model)
    assert caches
    del engine, inside
    gc.collect()
    assert model() is not None
    assert not [cache for cache in caches if cache() is not None]
    runner.use(None)  # what the plugin does when the session is over
    gc.collect()
    assert model() is None


def tensors(caches):
    states = [tensor for pair in caches.states.values() for tensor in pair]
    return [tensor for tensor in [*caches.attention.values(), *states] if isinstance(tensor, torch.Tensor)]


def test_a_transformers_model_that_a_test_had_in_hand_is_not_kept():
    def run(touch):
        with hf_runner.HfRunner(MODEL, dtype="float32") as hf:
            if touch:
                with torch.no_grad():
                    hf.model.lm_head.weight.zero_()
            return hf.generate_greedy_logprobs_limit(["abc"], 2, 1)

    right = run(touch=False)
    count = len(hf_runner.SHELF.loads)
    assert run(touch=True) != right
    assert run(touch=False) == right
    assert len(hf_runner.SHELF.loads) == count + 1


MANY = """
    import pytest

    @pytest.mark.matrix("toy.toml", verdict="valid")
    def test_one(cell, cell_runner, hf_runner):
        with cell_runner() as engine, hf_runner(cell.model) as hf:
            assert engine.generate_greedy(["x"], 1) and hf.generate_greedy(["x"], 1)

    @pytest.mark.matrix("toy.toml", verdict="valid")
    def test_two(cell, cell_runner):
        with cell_runner() as engine:
            assert engine.generate_greedy(["x"], 1)
"""
COUNTED = """
    import os
    import sys

    def pytest_sessionfinish():
        for name in ("engines.reference", "hf_runner"):
            module = sys.modules.get(f"staticfire.harness.plugin.{name}")
            for key in module.SHELF.loads if module else ():
                with open("loads", "a") as file:
                    print(os.environ["PYTEST_XDIST_WORKER"], name, hash(key), file=file)
"""


@pytest.mark.slow
def test_a_model_is_loaded_once_in_all_workers(suite):
    suite.write("test_it.py", MANY)
    suite.write("conftest.py", COUNTED)
    run = suite.run("-n", "2", "--dist=loadgroup", PYTHONHASHSEED="0")
    assert run.code == 0, run.text
    assert run.count("passed") == 12
    found = [line.split(maxsplit=1) for line in (suite.folder / "loads").read_text().splitlines()]
    assert len({what for _, what in found}) == len(found) == 4
    assert len({worker for worker, _ in found}) == 2
