"""How one request's tokens are chosen."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from staticfire.engine.errors import RequestError


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Sampling options of one request; names follow vLLM.

    Attributes:
        temperature: Finite; 0 is greedy.
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
        faults = [
            *_int_fault("max_tokens", self.max_tokens, least=1),
            *_number_fault("temperature", self.temperature, "a finite number of at least 0", _is_temperature),
            *_number_fault("top_p", self.top_p, "a number in (0, 1]", _is_mass),
            *_int_fault("top_k", self.top_k, least=0),
            *_int_fault("seed", self.seed, optional=True),
            *_int_fault("logprobs", self.logprobs, least=0, optional=True),
            *_int_fault("prompt_logprobs", self.prompt_logprobs, least=0, optional=True),
            *_int_fault("priority", self.priority),
            *_tokens_fault("stop_token_ids", self.stop_token_ids),
            *_bool_fault("ignore_eos", self.ignore_eos),
        ]
        if self.forced_token_ids is not None:
            faults += _tokens_fault("forced_token_ids", self.forced_token_ids)
            if not self.forced_token_ids:
                faults.append("forced_token_ids=(): must hold at least one token")
        if faults:
            raise RequestError("; ".join(faults))


def _int_fault(name: str, value: object, *, least: int | None = None, optional: bool = False) -> list[str]:
    if optional and value is None:
        return []
    if type(value) is not int:
        return [f"{name}={value!r}: must be an int{' or None' if optional else ''}"]
    if least is not None and value < least:
        return [f"{name}={value}: must be at least {least}"]
    return []


def _number_fault(name: str, value: object, wanted: str, allowed: Callable[[float], bool]) -> list[str]:
    if isinstance(value, int | float) and not isinstance(value, bool) and allowed(value):
        return []
    return [f"{name}={value!r}: must be {wanted}"]


def _bool_fault(name: str, value: object) -> list[str]:
    return [] if isinstance(value, bool) else [f"{name}={value!r}: must be True or False"]


def _tokens_fault(name: str, value: object) -> list[str]:
    if isinstance(value, tuple | list) and all(type(token) is int for token in value):
        return []
    return [f"{name}={value!r}: must be a tuple of int"]


def _is_temperature(value: float) -> bool:
    return 0 <= value < math.inf


def _is_mass(value: float) -> bool:
    return 0 < value <= 1
