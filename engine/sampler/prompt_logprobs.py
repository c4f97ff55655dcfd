"""Log-probabilities of the prompt, chunk by chunk."""

from collections.abc import Callable, Iterable, Sequence

import torch

from staticfire.engine.sampler.logprobs import token_logprobs
from staticfire.engine.scheduler.output import ScheduledChunk, TokenLogprobs


class PromptLogprobs:
    """Describes the prompt tokens of the requests that ask for it.

    The token after a chunk's last one is not in the chunk; the logits there are kept until the next chunk brings it.
    """

    def __init__(self, to_logits: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Use `to_logits`: hidden [n, hidden] -> [n, vocabulary]."""
        self._to_logits = to_logits
        self._carried: dict[str, torch.Tensor] = {}

    def forget(self, request_ids: Iterable[str]) -> None:
        """Drop what is kept for requests that ended or lost their blocks."""
        if self._carried:
            for request_id in request_ids:
                self._carried.pop(request_id, None)

    def describe(self, chunks: Sequence[ScheduledChunk], hidden: torch.Tensor) -> dict[str, list[TokenLogprobs]]:
        """Prompt tokens whose logits are known after this step: the last one described stands at
        min(chunk end, prompt length) - 1.

        Args:
            chunks: The step's chunks.
            hidden: [tokens, hidden] of all of them.
        """  # noqa: D205 - the sentence is longer than a line
        found: dict[str, list[TokenLogprobs]] = {}
        row = 0
        for chunk in chunks:
            length = len(chunk.token_ids)
            asked = chunk.sampling_params.prompt_logprobs
            if asked is not None and chunk.start < chunk.num_prompt_tokens:
                found[chunk.request_id] = self._chunk(chunk, hidden[row : row + length], asked)
            row += length
        return found

    def _chunk(self, chunk: ScheduledChunk, hidden: torch.Tensor, asked: int) -> list[TokenLogprobs]:
        in_prompt = min(len(chunk.token_ids), chunk.num_prompt_tokens - chunk.start)
        logits = self._to_logits(hidden[:in_prompt])
        tokens = chunk.token_ids[1:in_prompt]
        described = logits[: in_prompt - 1]
        before = self._carried.pop(chunk.request_id, None)
        if before is not None:
            tokens = [chunk.token_ids[0], *tokens]
            described = torch.cat((before[None], described))
        if chunk.start + in_prompt < chunk.num_prompt_tokens:
            self._carried[chunk.request_id] = logits[-1]
        return token_logprobs(described, tokens, [asked] * len(tokens))
