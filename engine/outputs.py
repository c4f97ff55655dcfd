"""What `LLM.generate` returns; names follow vLLM."""

from dataclasses import dataclass, field
from typing import Literal

from staticfire.engine.scheduler.output import TokenLogprobs


@dataclass(slots=True)
class CompletionOutput:
    """The generated tokens of one request."""

    token_ids: list[int]
    text: str
    finish_reason: Literal["stop", "length", "abort"] | None
    logprobs: list[TokenLogprobs] | None = None


@dataclass(slots=True)
class RequestStats:
    """What happened on the way, so that a test can assert that its condition really occurred.

    Attributes:
        num_cached_tokens: Prompt tokens served from the prefix cache at first scheduling.
        num_preemptions: Times the request lost its blocks.
        chunks: (start, length) of every chunk computed, recomputation included.
        restored_states: Times a cached recurrent state was the start of a chunk after a hit.
    """

    num_cached_tokens: int = 0
    num_preemptions: int = 0
    chunks: list[tuple[int, int]] = field(default_factory=list)
    restored_states: int = 0


@dataclass(slots=True)
class RequestOutput:
    """One finished request."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput]
    stats: RequestStats
    prompt_logprobs: list[TokenLogprobs | None] | None = None
