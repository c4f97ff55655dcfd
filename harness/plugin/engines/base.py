"""The contract of an engine under test: started with keywords as a user types them, asked for tokens, closed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Logprob(NamedTuple):
    """One candidate at one position; the names are vLLM's."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


Logprobs = list[dict[int, Any]]
"""Position -> token id -> its log-probability."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One continuation of a prompt.

    Attributes:
        token_ids: The generated tokens.
        text: Their text.
        logprobs: The top candidates at each position; None where none were asked for.
    """

    token_ids: list[int]
    text: str
    logprobs: Logprobs | None = None


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of one prompt.

    Attributes:
        prompt: Its text; empty for a prompt of tokens.
        prompt_token_ids: Its tokens.
        samples: The continuations.
        prompt_logprobs: Candidates at each prompt position, the first of which has none; None where not asked for.
    """

    prompt: str
    prompt_token_ids: list[int]
    samples: list[Sample]
    prompt_logprobs: list[dict[int, Any] | None] | None = None


class RunningEngine(Protocol):
    """An engine that has started."""

    @property
    def llm(self) -> Any:
        """The engine's own object, for what this contract does not say."""
        ...

    def generate(self, prompts: Sequence[str | list[int]], params: Any) -> list[Generated]:
        """Continue prompts under the engine's own sampling parameters."""
        ...

    def sampling(self, **options: Any) -> Any:
        """The engine's own sampling parameters, by vLLM's names."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


class EngineUnderTest(Protocol):
    """An engine that can be started."""

    @property
    def name(self) -> str:
        """As `--sf-engine` names it."""
        ...

    @property
    def hidden(self) -> Mapping[str, Any]:
        """Keywords that vLLM's own test suite adds where a test types none, besides those in the signature."""
        ...

    def start(self, model: str, typed: Mapping[str, Any]) -> RunningEngine:
        """Start with keywords as a user types them; a value of None leaves the engine its default.

        Raises:
            Exception: A refusal that `refusal.refusal_of` understands, or a failure.
        """
        ...
