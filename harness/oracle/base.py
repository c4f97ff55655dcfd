"""The contract of an oracle: what it is asked, what it answers, and how an answer is graded.

Nothing here imports torch; arrays are numpy's, because answers are stored on disk and outlive the process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Tokens = tuple[int, ...]

Grade = Literal["exact", "within-noise", "suspect", "wrong"]
"""`exact` and `within-noise` pass; `suspect` is off by less than ten times what is allowed, `wrong` by more."""

GRADES: tuple[Grade, ...] = get_args(Grade)
PASSING: frozenset[Grade] = frozenset({"exact", "within-noise"})


def worst(grades: Iterable[Grade]) -> Grade:
    """The worst of several grades.

    Raises:
        ValueError: There are none: nothing was compared, and nothing compared is no pass.
    """
    found = list(grades)
    if not found:
        raise ValueError("no grades: nothing was compared")
    return max(found, key=GRADES.index)


class OracleError(Exception):
    """The oracle cannot answer: an unknown family, a known-bad version, or noise of its own above the limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What an oracle is asked about a checkpoint; equal questions have equal answers.

    Attributes:
        checkpoint: Folder with `config.json` and safetensors.
        dtype: dtype the engine computes in: `float32`, `bfloat16`, ...
        quantization: The engine's weight quantization; None computes with the checkpoint's own weights.
        max_tokens: Tokens to generate after each prompt.
        ssm_dtype: dtype in which the engine keeps recurrent states between steps; None keeps them as computed.
        conv_dtype: The same for convolution states.
        kv_dtype: The same for keys and values.
    """

    checkpoint: Path
    dtype: str
    quantization: str | None
    max_tokens: int
    ssm_dtype: str | None = None
    conv_dtype: str | None = None
    kv_dtype: str | None = None

    @property
    def rounds_states(self) -> bool:
        """Whether a state is kept in another dtype than the engine computes in, so that resuming from it rounds."""
        return any(kept not in (None, self.dtype) for kept in (self.ssm_dtype, self.conv_dtype, self.kv_dtype))


@dataclass(frozen=True, slots=True)
class Noise:
    """How far two runs of the *oracle* differ from each other: the yardstick, never measured on the engine.

    Attributes:
        max: Largest |delta logprob| over the checked entries (nats).
        rms: Root mean square of the same over one prompt (nats).
        router: Largest |delta router logit|; 0 without routers.
    """

    max: float
    rms: float
    router: float

    @staticmethod
    def of(noises: "Sequence[Noise]") -> "Noise":
        """The noise of several prompts together: the largest of each figure.

        Raises:
            ValueError: There are none.
        """
        if not noises:
            raise ValueError("no noise was measured")
        return Noise(max(n.max for n in noises), max(n.rms for n in noises), max(n.router for n in noises))


@dataclass(frozen=True, slots=True)
class Trace:
    """What an oracle says about one prompt.

    T counts the tokens fed: prompt and all generated but the last. n is the number of generated tokens, V the
    vocabulary, L the MoE layers in order, E their experts, k the experts chosen per token.

    Attributes:
        prompt: The prompt.
        tokens: The greedy continuation in the question's dtype, n tokens.
        rows: Log-probabilities [n, V] over that continuation, teacher-forced, in one forward pass of at least float32.
        router_logits: [L, T, E] of that pass.
        routing: Experts used in that pass, [L, T, k].
        noise: What the oracle's own second path makes of the same tokens under the same routing.
    """

    prompt: Tokens
    tokens: Tokens
    rows: Array
    router_logits: Array
    routing: Array
    noise: Noise


@dataclass(frozen=True, slots=True)
class Replay:
    """The oracle's values when its routers are made to choose the experts given; fields as in `Trace`."""

    rows: Array
    router_logits: Array


class Oracle(Protocol):
    """A source of truth that is independent of the engine.

    Attributes:
        name: As reports name it.
        version: Changes whenever answers may change: the oracle's code and the libraries under it.
    """

    name: str

    @property
    def version(self) -> str:
        """Part of the key under which answers are stored."""
        ...

    def trace(self, question: Question, prompt: Tokens) -> Trace:
        """Answer for one prompt.

        Raises:
            OracleError: It cannot be trusted with this question.
        """
        ...

    def replay(self, question: Question, prompt: Tokens, tokens: Tokens, routing: Array) -> Replay:
        """Values for `prompt` followed by `tokens` under the routing [L, T, k].

        Raises:
            OracleError: It cannot be trusted with this question.
        """
        ...

    def score(self, question: Question, tokens: Tokens, last: int, routing: Array | None) -> Array:
        """Log-probabilities [last, V] of what follows each of the last of some tokens.

        Args:
            question: The question; its `max_tokens` means nothing here.
            tokens: All tokens fed.
            last: How many of them are asked about.
            routing: Experts [L, T, k] to use; None leaves the choice to the oracle's routers.

        Raises:
            OracleError: It cannot be trusted with this question.
        """
        ...


def top_entries(rows: Array, count: int = 20) -> Array:
    """Indices [n, count] of the largest entries of each row: those an engine reports, and noise is measured on."""
    count = min(count, rows.shape[-1])
    return np.argpartition(-rows, count - 1, axis=-1)[..., :count]
