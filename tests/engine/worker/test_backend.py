"""The same engine on Triton's kernels: equal tokens, and a clear word where they cannot run."""

import os
import subprocess
import sys
from typing import Any

import pytest

from staticfire.engine.errors import EngineError
from staticfire.engine.llm import LLM
from staticfire.engine.process.kernels import kernel_environment
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.worker import backend

pytestmark = pytest.mark.engine

PROMPTS = [[5, 9, 260, 7], [40, 3]]
PARAMS = SamplingParams(max_tokens=2, ignore_eos=True, logprobs=0)
# Prompts that are cut, so that states go from step to step; the interpreter takes a second for each.
ENGINE: dict[str, Any] = {
    "max_num_batched_tokens": 3,
    "max_num_seqs": 2,
    "max_model_len": 32,
    "enable_chunked_prefill": True,
}


def answers(checkpoint, **config):
    with LLM(checkpoint, **ENGINE, **config) as llm:
        answers = [output.outputs[0] for output in llm.generate([list(prompt) for prompt in PROMPTS], PARAMS)]
    return [(answer.token_ids, [entry.logprob for entry in answer.logprobs or ()]) for answer in answers]


@pytest.mark.interp
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "config", "allowed"),
    [
        ("jamba", {"dtype": "float64", "quantization": "experts_int8"}, 1e-9),
        ("jamba", {"dtype": "float32", "block_size": 16, "mamba_cache_mode": "align"}, 1e-4),
        ("llama", {"dtype": "float64"}, 1e-9),
    ],
)
def test_tokens_and_logprobs_are_those_of_the_torch_backend(request, model, config, allowed):
    checkpoint = request.getfixturevalue(model)
    ours = answers(checkpoint, kernel_backend="triton", **config)
    theirs = answers(checkpoint, kernel_backend="torch", **config)
    assert [tokens for tokens, _ in ours] == [tokens for tokens, _ in theirs]
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, rel=0, abs=allowed)


WITHOUT_INTERPRETER = """
import sys
from staticfire.engine.llm import LLM
from staticfire.engine.sampling_params import SamplingParams

if __name__ == "__main__":
    with LLM(sys.argv[1], kernel_backend="triton", max_model_len=32, **eval(sys.argv[2])) as llm:
        print(llm.generate([[5, 9]], SamplingParams(max_tokens=2, ignore_eos=True))[0].outputs[0].token_ids)
"""


def without_interpreter(checkpoint, tmp_path, **config):
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_INTERPRETER)
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    command = [sys.executable, str(script), str(checkpoint), repr(config)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_process_without_the_interpreter_says_what_to_set(llama, tmp_path):
    done = without_interpreter(llama, tmp_path)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("staticfire.engine.errors.EngineError: kernel_backend='triton' on a CPU")
    assert "set TRITON_INTERPRET=1 before the process starts" in last
    assert "enable_multiprocessing=True" in last


@pytest.mark.interp
@pytest.mark.slow
@pytest.mark.parametrize("layout", [{"enable_multiprocessing": True}, {"tensor_parallel_size": 2}])
def test_engines_and_ranks_in_processes_of_their_own_are_started_with_it(llama, tmp_path, layout):
    done = without_interpreter(llama, tmp_path, **layout)
    assert done.returncode == 0, done.stderr
    with LLM(llama, max_model_len=32) as llm:
        expected = llm.generate([[5, 9]], SamplingParams(max_tokens=2, ignore_eos=True))[0].outputs[0].token_ids
    assert done.stdout.strip() == repr(list(expected))


def test_where_triton_is_not_installed_the_engine_says_so(monkeypatch):
    monkeypatch.setattr(backend, "find_spec", lambda name: None)
    with pytest.raises(EngineError, match="triton is not installed here"):
        backend.require_backend("triton")
    backend.require_backend("torch")


def test_only_triton_needs_variables():
    assert kernel_environment("torch") == {}
    assert kernel_environment("triton") == {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": "1"}
