"""Offline inference: a model, a configuration, prompts in, tokens out."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from staticfire.engine.client.base import Client
from staticfire.engine.client.make import make_client
from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.errors import CheckpointError, EngineDeadError, EngineError, RequestError
from staticfire.engine.exchange import FinishedRequest, NewRequest
from staticfire.engine.loader.index import read_hf_config
from staticfire.engine.outputs import CompletionOutput, RequestOutput
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.tokenizer import Tokenizer, load_tokenizer

if TYPE_CHECKING:  # both import torch, which a front end without an engine in its process does not need
    from staticfire.engine.core import EngineCore
    from staticfire.engine.observer import Observer

Prompt = str | list[int]

Entry = TypeVar("Entry")


class LLM:
    """A model ready to generate, in this process or in others.

    Usable as a context manager; afterwards, or after `close`, it refuses to generate.

    Attributes:
        config: The accepted configuration, with what the workers made of it.
        tokenizer: Of the checkpoint; None where it has no `tokenizer.json`, and prompts must then be token ids.
        client: The engines, wherever they run.
    """

    def __init__(self, model: str | Path, *, observer: "Observer | None" = None, **config: Any) -> None:
        """Load a checkpoint.

        Args:
            model: Folder with `config.json`, safetensors files and, for text prompts, `tokenizer.json`.
            observer: Watches every step; only of an engine in this process.
            **config: Engine keywords by their vLLM names, such as `dtype`, `block_size`, `quantization`.

        Raises:
            ConfigError: The configuration is refused: unknown keywords with the nearest name, broken rules with fixes.
            CheckpointError: The checkpoint is damaged, incomplete or of another shape than its `config.json` says.
            EngineStartError: A process of the engine did not get ready.
            EngineError: The configuration is sound, but this engine cannot run it.
        """
        folder = Path(model)
        hf = read_hf_config(folder)
        resolved = accept(config, model_info(hf, str(folder)), for_running=True)
        self.tokenizer: Tokenizer | None = load_tokenizer(folder)
        self.client: Client = make_client(resolved, _eos_token_ids(folder, hf), observer)
        self.config: EngineConfig = self.client.config
        self._ids = count()
        self._seeds = count()
        self._closed = False
        self._generating = False
        self._left: set[str] = set()

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
            RequestError: A prompt is no text and no list of token ids, empty, too long for `max_model_len`, holds a
                token that the vocabulary lacks, an id is taken, or the numbers of prompts, parameters and ids differ.
                All reasons at once; none is run.
            EngineDeadError: An engine died. Data-parallel engines that are left finish what they have first; `outputs`
                of the error has what there is, `lost` the ids of the others.
            EngineError: The engine is closed, or is generating already: in another thread, or around an observer.
        """
        if self._closed:
            raise EngineError("this LLM is closed")
        texts = _as_list(prompts)
        params = self._params(sampling_params, len(texts))
        ids = self._request_ids(request_ids, len(texts))
        token_ids = self._token_ids(texts)
        requests = [NewRequest(*parts) for parts in zip(ids, token_ids, params, strict=True)]
        self._refuse_while_generating()
        try:
            self._generating = True
            finished, lost = self._run(requests)
        finally:
            self._generating = False
        outputs = [
            self._output(finished[request_id], text, tokens)
            for request_id, text, tokens in zip(ids, texts, token_ids, strict=True)
            if request_id in finished
        ]
        if lost:
            raise _death(lost, ids, outputs)
        return outputs

    def abort(self, request_ids: Collection[str]) -> None:
        """End requests early; unknown ids are passed over.

        To be called from an observer's `step` or `before_forward`; of engines in other processes, from any thread.
        """
        if not self._closed:
            self.client.abort(request_ids)

    def close(self) -> None:
        """Let the model and its caches go, or end the processes that hold them; closing again does nothing.

        Raises:
            EngineError: It is generating: the caches are in use.
        """
        self._refuse_while_generating()
        if not self._closed:
            self._closed = True
            self.client.close()

    @property
    def core(self) -> "EngineCore":
        """Scheduler and worker of an engine in this process, for step-by-step control.

        Raises:
            EngineError: The engine is in another process.
        """
        core: EngineCore | None = getattr(self.client, "core", None)
        if core is None:
            raise EngineError("the engine core is not in this process")
        return core

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, requests: Sequence[NewRequest]) -> tuple[dict[str, FinishedRequest], dict[str, EngineDeadError]]:
        """Add the requests and step until they have ended; if that fails, none of them stays behind.

        Returns:
            Those that finished, and those that died with an engine.
        """
        self._give_up_left()
        finished: dict[str, FinishedRequest] = {}
        lost: dict[str, EngineDeadError] = {}
        wanted = {request.request_id for request in requests}
        try:
            self._left = wanted
            try:
                self.client.add(requests)
            except RequestError:
                self._left = set()  # none was added, and an id may be somebody else's
                raise
            while missing := wanted - finished.keys() - lost.keys():
                try:
                    ended = self.client.step()
                except EngineDeadError as error:
                    lost |= dict.fromkeys(missing, error)
                else:
                    finished |= {request.request_id: request for request in ended}
                    lost |= self.client.take_lost()
                    if not ended and not self.client.has_unfinished():
                        _refuse_to_wait(wanted - finished.keys() - lost.keys())
        except BaseException:
            self._give_up_left()
            raise
        self._left = set()
        return finished, {request_id: error for request_id, error in lost.items() if request_id in wanted}

    def _give_up_left(self) -> None:
        """End what is left of a call that failed. An interrupt in here is made good when this is called again."""
        if self._left:
            self.client.abort(self._left, report=False)
            self._left = set()

    def _refuse_while_generating(self) -> None:
        if self._generating:
            raise EngineError("this LLM is generating already: pass all prompts in one call, or make a second LLM")

    def _params(self, given: SamplingParams | Sequence[SamplingParams] | None, number: int) -> list[SamplingParams]:
        if given is None or isinstance(given, SamplingParams):
            return [self._seeded(given or SamplingParams()) for _ in range(number)]
        params = _entries(given, "sampling_params", SamplingParams)
        if len(params) != number:
            raise RequestError(f"{number} prompts, but {len(params)} sampling_params")
        return [self._seeded(entry) for entry in params]

    def _request_ids(self, given: Sequence[str] | None, number: int) -> list[str]:
        if given is None:
            return [str(next(self._ids)) for _ in range(number)]
        ids = _entries(given, "request_ids", str)
        if len(ids) != number:
            raise RequestError(f"{number} prompts, but {len(ids)} request_ids")
        return ids

    def _seeded(self, params: SamplingParams) -> SamplingParams:
        """Give a sampling request without a seed one of its own, drawn from the engine's seed and a counter."""
        if params.temperature == 0 or params.seed is not None:
            return params
        return replace(params, seed=(self.config.model.seed << 32) + next(self._seeds))

    def _token_ids(self, prompts: Sequence[Prompt]) -> list[list[int]]:
        token_ids: list[list[int]] = []
        faults = []
        for number, prompt in enumerate(prompts):
            try:
                token_ids.append(self._encode(prompt) if isinstance(prompt, str) else _checked_tokens(prompt))
            except RequestError as error:
                faults.append(f"prompt {number}: {error}")
        if faults:
            raise RequestError("\n".join(faults))
        return token_ids

    def _encode(self, text: str) -> list[int]:
        if self.tokenizer is None:
            raise RequestError("the checkpoint has no tokenizer.json: give prompts as lists of token ids")
        return self.tokenizer.encode(text)

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


def _refuse_to_wait(missing: Collection[str]) -> None:
    """Raise if requests are missing of which no engine knows."""
    if missing:
        names = ", ".join(map(repr, sorted(missing)))
        raise EngineError(f"request {names}: ended by somebody else, who kept what came of it")


def _death(
    lost: Mapping[str, EngineDeadError], ids: Sequence[str], outputs: Sequence[RequestOutput]
) -> EngineDeadError:
    """One error for all engines that died: why, which prompts are lost, and what there is of the others."""
    reasons = list(dict.fromkeys(str(error) for error in lost.values()))
    numbers = [str(number) for number, request_id in enumerate(ids) if request_id in lost]
    prompts = f"prompt {numbers[0]} is lost" if len(numbers) == 1 else f"prompts {', '.join(numbers)} are lost"
    kept = f"; the outputs of the other {len(outputs)} are in this error's `outputs`" if outputs else ""
    return EngineDeadError(
        "\n".join([f"{prompts}{kept}", *reasons]),
        who=next(iter(lost.values())).who,
        lost=tuple(lost),
        outputs=outputs,
    )


def _as_list(prompts: Prompt | Sequence[Prompt]) -> list[Prompt]:
    if isinstance(prompts, str):
        return [prompts]
    if isinstance(prompts, bytes | Mapping | AbstractSet) or not isinstance(prompts, Iterable):
        raise RequestError(f"prompts: a {type(prompts).__name__} is neither a text nor a list of prompts")
    entries: list[Any] = list(prompts)
    if entries and not isinstance(entries[0], Iterable):
        return [entries]
    return entries


def _checked_tokens(prompt: object) -> list[int]:
    """Token ids, which may still be outside the vocabulary.

    Raises:
        RequestError: It is no sequence, or holds something else than ints.
    """
    if isinstance(prompt, bytes) or not isinstance(prompt, Sequence):
        raise RequestError(f"a {type(prompt).__name__} is neither a text nor a list of token ids")
    for token in prompt:
        if type(token) is not int:
            raise RequestError(f"{token!r} is a {type(token).__name__}, token ids are int")
    return list(prompt)


def _entries(given: object, name: str, kind: type[Entry]) -> list[Entry]:
    """The entries of a sequence, each checked.

    Raises:
        RequestError: It is no sequence of them.
    """
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise RequestError(f"{name}: must be a sequence of {kind.__name__}, is a {type(given).__name__}")
    wrong = [
        f"{name}[{index}]={entry!r}: must be a {kind.__name__}"
        for index, entry in enumerate(given)
        if not isinstance(entry, kind)
    ]
    if wrong:
        raise RequestError("\n".join(wrong))
    return list(given)


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
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: not JSON: {error}") from error
    found = generation.get("eos_token_id") if isinstance(generation, dict) else None
    if found is None:
        found = hf.get("eos_token_id")
    ids: Iterable[Any] = found if isinstance(found, list) else [] if found is None else [found]
    ids = list(ids)
    if any(type(token) is not int for token in ids):
        raise CheckpointError(f"{folder}: eos_token_id={found!r} must be an int or a list of them")
    return ids
