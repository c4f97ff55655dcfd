"""One request as the scheduler sees it. Imports no torch."""

from dataclasses import dataclass, field
from enum import Enum, auto

from staticfire.engine.sampling_params import SamplingParams


class RequestStatus(Enum):
    """Where a request stands."""

    WAITING = auto()
    RUNNING = auto()
    PREEMPTED = auto()
    FINISHED_STOPPED = auto()
    FINISHED_LENGTH = auto()
    FINISHED_ABORTED = auto()

    @property
    def finished(self) -> bool:
        """Whether nothing more will be scheduled."""
        # `value` costs ten times as much, and this is asked twice for every token.
        return bool(self._value_ >= _FIRST_FINISHED)


_FIRST_FINISHED = RequestStatus.FINISHED_STOPPED.value


@dataclass(slots=True, eq=False)
class Request:
    """Tokens known so far, and how many of them are computed.

    Attributes:
        request_id: Unique among live requests.
        prompt_token_ids: The prompt.
        sampling_params: How tokens are chosen.
        arrival: Sequence number of admission.
        output_token_ids: Tokens generated so far.
        num_computed_tokens: Leading tokens (prompt + output) whose KV and states exist.
        num_cached_tokens: Prefix-cache hit of the first scheduling; -1 before it.
        num_preemptions: Times it lost its blocks.
        num_restored_states: Times a hit made a cached recurrent state the start of a chunk.
        junction: Token at which prefill stops once, so that a shared prefix leaves a state behind; 0 for none.
        chunks: (start, length) of every chunk scheduled, recomputation included.
        block_hashes: Hash chain of its full blocks, grown by the cache manager.
        arrived_at: When the scheduler took it in, by the engine's clock.
        last_token_at: When its latest token was drawn.
    """

    request_id: str
    prompt_token_ids: list[int]
    sampling_params: SamplingParams
    arrival: int
    status: RequestStatus = RequestStatus.WAITING
    output_token_ids: list[int] = field(default_factory=list)
    num_computed_tokens: int = 0
    num_cached_tokens: int = -1
    num_preemptions: int = 0
    num_restored_states: int = 0
    junction: int = 0
    chunks: list[tuple[int, int]] = field(default_factory=list)
    block_hashes: list[bytes] = field(default_factory=list)
    arrived_at: float = 0.0
    last_token_at: float = 0.0

    @property
    def num_prompt_tokens(self) -> int:
        """Length of the prompt."""
        return len(self.prompt_token_ids)

    @property
    def num_tokens(self) -> int:
        """Known tokens: prompt and output."""
        return len(self.prompt_token_ids) + len(self.output_token_ids)

    def tokens(self, start: int, end: int) -> list[int]:
        """Known tokens in [start, end)."""
        prompt = len(self.prompt_token_ids)
        if end <= prompt:
            return self.prompt_token_ids[start:end]
        if start >= prompt:
            return self.output_token_ids[start - prompt : end - prompt]
        return self.prompt_token_ids[start:] + self.output_token_ids[: end - prompt]
