"""One step of computation: from what the scheduler decided to next tokens and log-probabilities."""

from collections.abc import Sequence

import numpy as np
import torch

from staticfire.engine.cache.spec import CacheLayout
from staticfire.engine.layers.attention import Attention
from staticfire.engine.layers.batch import ForwardBatch
from staticfire.engine.models.base import Decoder
from staticfire.engine.observer import Observer
from staticfire.engine.sampler.logprobs import token_logprobs
from staticfire.engine.sampler.prompt_logprobs import PromptLogprobs
from staticfire.engine.sampler.sampler import best_tokens, next_tokens
from staticfire.engine.scheduler.output import ScheduledChunk, SchedulerOutput, StepOutput, TokenLogprobs
from staticfire.engine.worker.cache import CacheBuffers
from staticfire.engine.worker.inputs import InputBuilder
from staticfire.kernels.dispatch import Backend


class ModelRunner:
    """Holds the model and its caches, and runs steps."""

    def __init__(
        self, model: Decoder, layout: CacheLayout, observer: Observer | None = None, backend: Backend = "torch"
    ) -> None:
        """Map the caches and tell every layer where its own lies; the ops are those of `backend`."""
        self.model = model
        self.caches = CacheBuffers(layout, backend)
        self._backend = backend
        self._inputs = InputBuilder(self.caches, model.dtype, backend)
        self._observer = observer
        self._plain = False
        self._prompt_logprobs = PromptLogprobs(model.logits)
        for number, layer in enumerate(model.layers):
            mixer, group = layer.mixer, self.caches.group_of[number]
            if isinstance(mixer, Attention):
                mixer.bind(group, self.caches.attention[number])
            else:
                conv_state, ssm_state = self.caches.states[number]
                mixer.bind(group, conv_state, ssm_state)

    def forget(self) -> None:
        """Keep nothing of the requests so far; what the caches hold is the scheduler's affair."""
        self._inputs.forget()
        self._prompt_logprobs = PromptLogprobs(self.model.logits)

    @torch.inference_mode()
    def execute(self, output: SchedulerOutput) -> StepOutput:
        """Run one step.

        Raises:
            EngineError: The forward pass gave logits that are not finite.
        """
        self._prompt_logprobs.forget((*output.finished, *output.preempted))
        self._prepare_caches(output)
        observer = self._observer
        batch = self._inputs.build(output, observer.routing if observer is not None else None)
        if observer is not None:
            observer.before_forward(output, self.caches)
        hidden = self._forward(batch)
        answer = self._answer(output.chunks, hidden, batch)
        if observer is not None:
            observer.step(output, answer)
        return answer

    def _forward(self, batch: ForwardBatch) -> torch.Tensor:
        if self._backend == "torch":
            return self.model.forward(batch)
        # Kernels make infinities and NaN on purpose. A GPU says nothing of them; the interpreter's numpy warns.
        with np.errstate(all="ignore"):
            return self.model.forward(batch)

    def _prepare_caches(self, output: SchedulerOutput) -> None:
        """Copies come first: a block that is zeroed now may have been another's source a moment ago."""
        if output.state_copies:
            self.caches.copy_states(output.state_copies)
        fresh = [block for chunk in output.chunks if chunk.start == 0 for block in chunk.state_blocks]
        if fresh or output.zero_blocks:
            self.caches.zero([*output.zero_blocks, *fresh])

    def _answer(self, chunks: tuple[ScheduledChunk, ...], hidden: torch.Tensor, batch: ForwardBatch) -> StepOutput:
        if not batch.continued:
            self._plain = batch.one_token_each and all(map(_plain, chunks))
        if self._plain:
            tokens = best_tokens(self.model.logits(hidden), chunks)
            return StepOutput(dict(zip([chunk.request_id for chunk in chunks], tokens, strict=True)), {}, {})
        last = [row for row, chunk in zip((batch.cu_seqlens[1:] - 1).tolist(), chunks, strict=True) if chunk.samples]
        sampling = [chunk for chunk in chunks if chunk.samples]
        sampled: dict[str, int] = {}
        logprobs: dict[str, TokenLogprobs] = {}
        if sampling:
            logits = self.model.logits(hidden[last])
            tokens = next_tokens(logits, sampling)
            sampled = {chunk.request_id: token for chunk, token in zip(sampling, tokens, strict=True)}
            logprobs = _logprobs(logits, sampling, tokens)
        return StepOutput(sampled, logprobs, self._prompt_logprobs.describe(chunks, hidden))


def _plain(chunk: ScheduledChunk) -> bool:
    """Whether a decode asks for nothing but the best token, now and in every step after it."""
    params = chunk.sampling_params
    return (
        chunk.samples
        and params.temperature == 0
        and params.logprobs is None
        and params.forced_token_ids is None
        and chunk.start >= chunk.num_prompt_tokens
    )


def _logprobs(
    logits: torch.Tensor, chunks: Sequence[ScheduledChunk], tokens: Sequence[int]
) -> dict[str, TokenLogprobs]:
    """Logprobs of the next tokens of those chunks whose request asks for them."""
    rows = [row for row, chunk in enumerate(chunks) if chunk.sampling_params.logprobs is not None]
    if not rows:
        return {}
    asked = [chunks[row].sampling_params.logprobs or 0 for row in rows]
    if len(rows) < len(chunks):
        logits = logits[rows]
    described = token_logprobs(logits, [tokens[row] for row in rows], asked)
    return {chunks[row].request_id: entry for row, entry in zip(rows, described, strict=True)}
