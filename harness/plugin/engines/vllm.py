"""vLLM under test, as installed beside pytest. Imported when a test starts it."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from staticfire.harness.errors import InputError
from staticfire.harness.plugin.engines.base import Generated, Sample
from staticfire.harness.plugin.refusal import RefusedError

REFUSALS: Final = (ValueError, AssertionError, NotImplementedError)
"""What its configuration raises; pydantic's `ValidationError` is a `ValueError`."""


class RunningVllm:
    """A started `vllm.LLM`."""

    def __init__(self, package: Any, llm: Any) -> None:
        self._package = package
        self.llm = llm

    def generate(self, prompts: Sequence[str | list[int]], params: Any) -> list[Generated]:
        """See `RunningEngine.generate`."""
        asked = [prompt if isinstance(prompt, str) else {"prompt_token_ids": prompt} for prompt in prompts]
        return [_generated(output) for output in self.llm.generate(asked, sampling_params=params)]

    def sampling(self, **options: Any) -> Any:
        """See `RunningEngine.sampling`."""
        return self._package.SamplingParams(**options)

    def close(self) -> None:
        """Drop the engine, and wait for its memory: the next test may ask for most of it (see vLLM's clean-up)."""
        self.llm = None
        importlib.import_module("gc").collect()
        clean_up = getattr(importlib.import_module("vllm.distributed"), "cleanup_dist_env_and_memory", None)
        if clean_up is not None:
            clean_up()


class Vllm:
    """Starts the installed vLLM."""

    name: Final = "vllm"
    hidden: Final[Mapping[str, Any]] = {"compilation_config": {"cudagraph_capture_sizes": [4]}}

    def start(self, model: str, typed: Mapping[str, Any]) -> RunningVllm:
        """See `EngineUnderTest.start`.

        Raises:
            InputError: vLLM is not installed here.
            RefusedError: Its configuration refuses.
        """
        try:
            package = importlib.import_module("vllm")
        except ModuleNotFoundError as error:
            raise InputError(f"--sf-engine vllm: {error}; install vLLM beside pytest") from error
        try:
            return RunningVllm(package, package.LLM(model=model, **typed))
        except REFUSALS as error:
            raise RefusedError(f"vLLM refuses: {type(error).__name__}: {error}") from error


def supports_quantization(method: str) -> bool:
    """Whether vLLM knows a quantization, and the device is able to run it."""
    importlib.import_module("vllm")
    methods = importlib.import_module("vllm.model_executor.layers.quantization")
    if method not in methods.QUANTIZATION_METHODS:
        return False
    capability = importlib.import_module("vllm.platforms").current_platform.get_device_capability()
    if capability is None:
        return False
    return bool(capability.to_int() >= methods.get_quantization_config(method).get_min_capability())


def _generated(output: Any) -> Generated:
    samples = [Sample(list(one.token_ids), one.text, one.logprobs) for one in output.outputs]
    return Generated(output.prompt or "", list(output.prompt_token_ids), samples, output.prompt_logprobs)
