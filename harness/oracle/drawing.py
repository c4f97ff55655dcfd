"""Which token a request must draw, from the definitions: temperature, then top-k, then top-p, then one number.

Written from the documented law (docs/engine.md) and shares no code with the engine: the probabilities come from the
oracle's logits, the number from the request's seed and the position of the token.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.oracle.base import Array


@dataclass(frozen=True, slots=True)
class Law:
    """How one token is drawn.

    Attributes:
        temperature: Positive.
        top_k: Tokens kept, 0 for all.
        top_p: Mass kept, in (0, 1].
        number: In [0, 1): where in the cumulative distribution, in the order of token ids, the token stands.
    """

    temperature: float
    top_k: int
    top_p: float
    number: float

    @classmethod
    def of(cls, params: SamplingParams, position: int) -> "Law":
        """The law of a seeded request at a position of its sequence, prompt included."""
        assert params.seed is not None
        return cls(params.temperature, params.top_k, params.top_p, number(params.seed, position))


def number(seed: int, position: int) -> float:
    """The uniform number of a seed and a position."""
    bits = np.random.Philox(key=np.array([seed % 2**64, position], np.uint64))
    return float(np.random.Generator(bits).random())


def filtered(logits: Array, law: Law) -> Array:
    """Probabilities [V] that are left: zero for what top-k and top-p take away.

    Top-p keeps the fewest best tokens whose share of what top-k left reaches `top_p`; of equal logits the lower id is
    the better.
    """
    best = sorted(range(len(logits)), key=lambda token: (-logits[token], token))[: law.top_k or len(logits)]
    weights = np.exp((np.asarray(logits, np.float64)[best] - logits[best[0]]) / law.temperature)
    shares = weights / weights.sum()
    kept = int(np.searchsorted(np.cumsum(shares), law.top_p)) + 1 if law.top_p < 1 else len(best)
    found = np.zeros(len(logits))
    found[best[:kept]] = shares[:kept]
    return np.asarray(found / found.sum())


def drawn(logits: Array, law: Law) -> int:
    """The token of that law."""
    cumulative = np.cumsum(filtered(logits, law))
    return int(np.searchsorted(cumulative, law.number, side="right").clip(max=len(logits) - 1))


def possible(logits: Array, law: Law, off: float) -> set[int]:
    """The tokens that logits within `off` of these may draw.

    A change of every logit by at most `off` moves no cumulative probability by more than e^(2 off / temperature) - 1,
    and lets two neighbours in rank change places where they are no further apart than twice that.
    """
    room = float(np.expm1(2 * off / law.temperature))
    return {drawn(ranks, nearby) for ranks in _reordered(logits, off) for nearby in _nearby(law, room)}


def _reordered(logits: Array, off: float) -> Iterator[Array]:
    yield logits
    order = np.argsort(-logits, kind="stable")
    for better, worse in pairwise(order.tolist()):
        if logits[better] - logits[worse] <= 2 * off:
            swapped = logits.copy()
            swapped[[better, worse]] = logits[[worse, better]]
            yield swapped


def _nearby(law: Law, room: float) -> Iterator[Law]:
    for mass in {law.top_p} | ({law.top_p - room, law.top_p + room} if law.top_p < 1 else set()):
        for at in (law.number, law.number - room, law.number + room):
            yield replace(law, top_p=min(max(mass, 1e-12), 1.0), number=min(max(at, 0.0), 1.0 - 2**-53))
