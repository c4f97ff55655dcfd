"""What the front end and an engine core tell each other about requests: plain values. Imports no torch."""

from dataclasses import dataclass
from typing import Literal

from staticfire.engine.outputs import RequestStats
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.scheduler.output import TokenLogprobs

FinishReason = Literal["stop", "length", "abort"]


@dataclass(frozen=True, slots=True)
class NewRequest:
    """What the front end asks for."""

    request_id: str
    prompt_token_ids: list[int]
    sampling_params: SamplingParams


@dataclass(frozen=True, slots=True)
class FinishedRequest:
    """What the front end gets.

    Attributes:
        request_id: Whose.
        token_ids: Generated tokens.
        finish_reason: Why it ended.
        logprobs: One entry per generated token, None unless asked for.
        prompt_logprobs: One entry per prompt token, the first None; None unless asked for.
        stats: What happened on the way.
    """

    request_id: str
    token_ids: list[int]
    finish_reason: FinishReason
    logprobs: list[TokenLogprobs] | None
    prompt_logprobs: list[TokenLogprobs | None] | None
    stats: RequestStats
