"""Choosing a token at random, repeatably: a draw depends on the seed and the position alone."""

import numpy as np
import numpy.typing as npt

from staticfire.engine.sampling_params import SamplingParams

Floats = npt.NDArray[np.float64]


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) for (seed, position), from the counter-based Philox generator (Salmon et al. 2011)."""
    key = np.array([seed % 2**64, position], np.uint64)
    return float(np.random.Generator(np.random.Philox(key=key)).random())


def keep_mask(scaled: Floats, top_k: int, top_p: float, logits: Floats | None = None) -> npt.NDArray[np.bool_]:
    """Tokens that may be drawn: the `top_k` best, and of those the fewest whose mass reaches `top_p`.

    Args:
        scaled: [vocabulary] logits over temperature.
        top_k: 0 keeps all. Of equal logits the lower token id counts as better.
        top_p: Mass in (0, 1], of what top-k left. The best token is always kept.
        logits: What `scaled` was made of, where scaling may have rounded unequal logits to equal ones.
    """
    keep = np.ones(scaled.shape[0], np.bool_)
    if top_k == 0 and top_p == 1.0:
        return keep
    order = np.argsort(-(scaled if logits is None else logits), kind="stable")
    if top_k:
        keep[order[top_k:]] = False
        order = order[:top_k]
    if top_p < 1.0:
        mass = np.exp(scaled[order] - scaled[order[0]])
        mass /= mass.sum()
        before = np.cumsum(mass) - mass
        before[0] = 0.0
        keep[order[before >= top_p]] = False
    return keep


def draw(logits: Floats, params: SamplingParams, position: int) -> int:
    """Draw the token at `position`; `params.seed` must be set and the temperature positive.

    The inverse of the cumulative distribution is taken in the order of token ids, which rounding cannot reorder.
    """
    assert params.seed is not None
    # The largest is taken off first: next to a tiny temperature it would overflow, where the others may.
    with np.errstate(over="ignore"):
        scaled = (logits - logits.max()) / params.temperature
    keep = keep_mask(scaled, params.top_k, params.top_p, logits)
    mass = np.where(keep, np.exp(scaled), 0.0)
    cumulative = np.cumsum(mass)
    token = int(np.searchsorted(cumulative, uniform(params.seed, position) * cumulative[-1], side="right"))
    return min(token, int(np.flatnonzero(keep)[-1]))
