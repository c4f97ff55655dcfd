"""How one request's tokens are chosen."""

from dataclasses import dataclass

from staticfire.engine.errors import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling options of one request; names follow vLLM.

    Attributes:
        temperature: 0 is greedy.
        top_p: Nucleus mass in (0, 1].
        top_k: Highest-scoring tokens kept; 0 keeps all.
        max_tokens: Most tokens to generate, at least 1.
        ignore_eos: Go on past the end-of-sequence token.
        stop_token_ids: Further tokens that end the request.
        seed: Makes sampling repeatable: draws depend on (seed, position) alone, so neither batching nor
            preemption changes them.
        logprobs: Top tokens to report per position besides the chosen one; None reports nothing.
        prompt_logprobs: The same for prompt positions.
        forced_token_ids: Teacher forcing: these tokens are appended instead of the sampled ones, while argmax and
            logprobs are still the model's own. Ends after the last one.
        priority: Lower runs first under the `priority` policy.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 16
    ignore_eos: bool = False
    stop_token_ids: tuple[int, ...] = ()
    seed: int | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    forced_token_ids: tuple[int, ...] | None = None
    priority: int = 0

    def __post_init__(self) -> None:
        """Refuse what has no meaning; all faults at once."""
        faults = []
        if self.max_tokens < 1:
            faults.append(f"max_tokens={self.max_tokens}: must be at least 1")
        if not self.temperature >= 0:
            faults.append(f"temperature={self.temperature}: must be 0 or more")
        if not 0 < self.top_p <= 1:
            faults.append(f"top_p={self.top_p}: must be in (0, 1]")
        if self.top_k < 0:
            faults.append(f"top_k={self.top_k}: must be 0 (all) or more")
        if self.logprobs is not None and self.logprobs < 0:
            faults.append(f"logprobs={self.logprobs}: must be 0 or more")
        if self.prompt_logprobs is not None and self.prompt_logprobs < 0:
            faults.append(f"prompt_logprobs={self.prompt_logprobs}: must be 0 or more")
        if self.forced_token_ids is not None and not self.forced_token_ids:
            faults.append("forced_token_ids=(): must hold at least one token")
        if faults:
            raise RequestError("; ".join(faults))
