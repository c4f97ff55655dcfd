"""What one step computes: values that could cross a process boundary. Imports no torch."""

from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from staticfire.engine.sampling_params import SamplingParams


class StateCopy(NamedTuple):
    """Before the forward pass, copy the recurrent state of block `src` to block `dst` in every layer of `group`."""

    group: int
    src: int
    dst: int


# Structs, for they are made anew for every request in every step, and take a seventh of the time of a frozen dataclass.
class ScheduledChunk(msgspec.Struct, frozen=True):
    """The tokens of one request in one step.

    Attributes:
        request_id: Whose tokens.
        token_ids: Tokens at positions [start, start + len(token_ids)).
        start: Tokens already computed.
        block_ids: One block table per cache group. An attention table covers every position up to the end of the
            chunk. A recurrent group's table holds, at index `state_slots[group]`, the block whose state the chunk
            reads (if start > 0) and writes; NULL_BLOCK elsewhere is a placeholder.
        state_blocks: For each recurrent group (in group order, attention groups left out) the block that holds
            the running state during this chunk. It is zeroed by the worker when start == 0.
        samples: Whether the last token of the chunk is the last known one, so that a next token is drawn.
        sampling_params: How it is drawn.
        num_prompt_tokens: Length of the prompt, for prompt logprobs.
        hit_tokens: Tokens before `start` that came out of the prefix cache, in the first chunk after a lookup; with
            recurrent groups the chunk then starts from a restored state. 0 in all other chunks.
    """

    request_id: str
    token_ids: list[int]
    start: int
    block_ids: tuple[list[int], ...]
    state_blocks: tuple[int, ...]
    samples: bool
    sampling_params: SamplingParams
    num_prompt_tokens: int
    hit_tokens: int = 0


class SchedulerOutput(msgspec.Struct, frozen=True):
    """One step.

    Attributes:
        step: Counter from 0.
        chunks: What is computed, decodes and prefills mixed, in batch order.
        state_copies: Copies to make first (align mode moves the running state to a new block). No block is both a
            source and a destination, and none is in `zero_blocks`, so their order does not matter.
        zero_blocks: Blocks newly given to attention groups of a hybrid cache, zeroed before first use: a page may
            still hold a state whose bytes read as NaN (vLLM #35219).
        preempted: Requests that lost their blocks in this step.
        finished: Requests that ended since the last step; the worker forgets them.
    """

    step: int
    chunks: tuple[ScheduledChunk, ...]
    state_copies: tuple[StateCopy, ...] = ()
    zero_blocks: tuple[int, ...] = ()
    preempted: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()

    @property
    def num_scheduled_tokens(self) -> int:
        """Tokens in the step."""
        return sum(len(chunk.token_ids) for chunk in self.chunks)


class TokenLogprobs(NamedTuple):
    """Log-probabilities at one position: the token that followed, its rank's logprob, and the top ones."""

    token_id: int
    logprob: float
    argmax: int
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class StepOutput:
    """What the worker answers.

    Attributes:
        sampled: request id -> next token, for chunks that sample.
        logprobs: request id -> logprobs of that token, where asked for.
        prompt_logprobs: request id -> logprobs of prompt positions in this chunk, where asked for.
    """

    sampled: dict[str, int]
    logprobs: dict[str, TokenLogprobs]
    prompt_logprobs: dict[str, list[TokenLogprobs]]
