"""Offline inference: a model, a configuration, prompts in, tokens out."""

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.core import EngineCore, FinishedRequest, NewRequest
from staticfire.engine.errors import CheckpointError, EngineError, RequestError
from staticfire.engine.loader.index import read_hf_config
from staticfire.engine.observer import Observer
from staticfire.engine.outputs import CompletionOutput, RequestOutput
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.tokenizer import Tokenizer, load_tokenizer

Prompt = str | list[int]


class LLM:
    """A model ready to generate, in this process.

    Usable as a context manager; afterwards, or after `close`, it refuses to generate.

    Attributes:
        config: The accepted configuration, with what the worker made of it.
        tokenizer: Of the checkpoint; None where it has no `tokenizer.json`, and prompts must then be token ids.
        core: Scheduler and worker, for step-by-step control.
    """

    def __init__(self, model: str | Path, *, observer: Observer | None = None, **config: Any) -> None:
        """Load a checkpoint.

        Args:
            model: Folder with `config.json`, safetensors files and, for text prompts, `tokenizer.json`.
            observer: Watches every step.
            **config: Engine keywords by their vLLM names, such as `dtype`, `block_size`, `quantization`.

        Raises:
            ConfigError: The configuration is refused: unknown keywords with the nearest name, broken rules with fixes.
            CheckpointError: The checkpoint is damaged, incomplete or of another shape than its `config.json` says.
            EngineError: The configuration is sound, but this engine cannot run it.
        """
        folder = Path(model)
        hf = read_hf_config(folder)
        self.config: EngineConfig = accept(config, model_info(hf, str(folder)), for_running=True)
        self.tokenizer: Tokenizer | None = load_tokenizer(folder)
        self.core = EngineCore(self.config, _eos_token_ids(folder, hf), observer)
        self._ids = count()
        self._seeds = count()
        self._closed = False

    def generate(
        self,
        prompts: Prompt | Sequence[Prompt],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        *,
        request_ids: Sequence[str] | None = None,
    ) -> list[RequestOutput]:
        """Generate for every prompt, batched as the configuration allows.

        Args:
            prompts: Texts or lists of token ids; a single one stands for a list of one.
            sampling_params: One for all, or one each; None samples greedily.
            request_ids: One each, unique; made up when left out.

        Returns:
            One output per prompt, in their order. A request that `abort` ended has what it had by then.

        Raises:
            RequestError: A prompt is empty, too long for `max_model_len`, holds a token that the vocabulary lacks, an
                id is taken, or the numbers of prompts, parameters and ids differ. All reasons at once; none is run.
            EngineError: The engine is closed.
        """
        if self._closed:
            raise EngineError("this LLM is closed")
        texts = _as_list(prompts)
        params = self._params(sampling_params, len(texts))
        ids = list(request_ids) if request_ids is not None else [str(next(self._ids)) for _ in texts]
        if len(ids) != len(texts):
            raise RequestError(f"{len(texts)} prompts, but {len(ids)} request_ids")
        token_ids = self._token_ids(texts)
        self.core.add([NewRequest(*parts) for parts in zip(ids, token_ids, params, strict=True)])
        finished = self._run(set(ids))
        return [
            self._output(finished[request_id], text, tokens)
            for request_id, text, tokens in zip(ids, texts, token_ids, strict=True)
        ]

    def abort(self, request_ids: Collection[str]) -> None:
        """End requests early, from an observer's `step` or `before_forward`; unknown ids are passed over."""
        self.core.abort(request_ids)

    def close(self) -> None:
        """Let the model and its caches go; closing again does nothing."""
        if not self._closed:
            self._closed = True
            del self.core

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, wanted: set[str]) -> dict[str, FinishedRequest]:
        """Step until the wanted requests have ended; if a step fails, none of them stays behind."""
        finished: dict[str, FinishedRequest] = {}
        try:
            while wanted - finished.keys():
                for request in self.core.step():
                    finished[request.request_id] = request
        except BaseException:
            self.core.abort(wanted - finished.keys(), report=False)
            raise
        return finished

    def _params(self, given: SamplingParams | Sequence[SamplingParams] | None, number: int) -> list[SamplingParams]:
        params = (
            [given or SamplingParams()] * number if given is None or isinstance(given, SamplingParams) else list(given)
        )
        if len(params) != number:
            raise RequestError(f"{number} prompts, but {len(params)} sampling_params")
        return [self._seeded(entry) for entry in params]

    def _seeded(self, params: SamplingParams) -> SamplingParams:
        """Give a sampling request without a seed one of its own, drawn from the engine's seed and a counter."""
        if params.temperature == 0 or params.seed is not None:
            return params
        return replace(params, seed=(self.config.model.seed << 32) + next(self._seeds))

    def _token_ids(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        token_ids, faults = [], []
        for number, prompt in enumerate(prompts):
            if isinstance(prompt, str):
                if self.tokenizer is None:
                    raise RequestError("the checkpoint has no tokenizer.json: give prompts as lists of token ids")
                token_ids.append(self.tokenizer.encode(prompt))
                continue
            tokens = list(prompt)
            wrong = next((token for token in tokens if type(token) is not int), None)
            if wrong is not None:
                faults.append(f"prompt {number}: {wrong!r} is a {type(wrong).__name__}, token ids are int")
            token_ids.append(tokens)
        if faults:
            raise RequestError("\n".join(faults))
        return token_ids

    def _output(self, finished: FinishedRequest, prompt: Prompt, token_ids: list[int]) -> RequestOutput:
        completion = CompletionOutput(
            token_ids=finished.token_ids,
            text="" if self.tokenizer is None else self.tokenizer.decode(finished.token_ids),
            finish_reason=finished.finish_reason,
            logprobs=finished.logprobs,
        )
        return RequestOutput(
            request_id=finished.request_id,
            prompt=prompt if isinstance(prompt, str) else None,
            prompt_token_ids=token_ids,
            outputs=[completion],
            stats=finished.stats,
            prompt_logprobs=finished.prompt_logprobs,
        )


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, str):
        return [prompts]
    entries: list[Any] = list(prompts)
    if entries and isinstance(entries[0], int):
        return [entries]
    return entries


def _eos_token_ids(folder: Path, hf: dict[str, Any]) -> list[int]:
    """End-of-sequence ids: those of `generation_config.json` where it names any, else those of `config.json`.

    Raises:
        CheckpointError: `generation_config.json` is not a JSON object, or an id is not an int.
    """
    path = folder / "generation_config.json"
    generation: Any = {}
    if path.exists():
        try:
            generation = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CheckpointError(f"{path}: not JSON: {error}") from error
    found = generation.get("eos_token_id") if isinstance(generation, dict) else None
    if found is None:
        found = hf.get("eos_token_id")
    ids: Iterable[Any] = found if isinstance(found, list) else [] if found is None else [found]
    ids = list(ids)
    if any(type(token) is not int for token in ids):
        raise CheckpointError(f"{folder}: eos_token_id={found!r} must be an int or a list of them")
    return ids
