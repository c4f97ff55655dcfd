"""Which way through the experts is the quickest: a model of what each costs, with constants that were measured.

A product of r rows with a matrix of n weights takes about `call + n * (read + r * multiply)`: the weights come from
memory once, and are multiplied by every row. With E experts of n = 3 H I weights, T tokens of k experts each, and m
experts that any token chose (on average E * (1 - (1 - k / E) ** T)) that makes

    dense     DENSE_CALL  + E * n * (read + T * multiply)
    sorted    SORTED_CALL + m * (EXPERT_CALL + n * read) + T * k * n * multiply
    packed    SORTED_CALL + m * (EXPERT_CALL + 2 * packed_linear.CALL_NS + n * read) + T * k * n * packed_multiply

int8 weights are converted before they are multiplied: `CONVERT` a weight that is read. `tools/bench_moe.py` measures
all three over many shapes, fits the constants, and says how far the choice is from the best.
"""

from functools import lru_cache
from typing import Final, Literal, NamedTuple

import torch

from staticfire.kernels import packed_linear

Way = Literal["dense", "sorted", "packed"]

DENSE_CALL: Final = 14_000.0
SORTED_CALL: Final = 12_000.0
EXPERT_CALL: Final = 22_000.0
"""Nanoseconds of calls into torch: once, once, and for each expert chosen. The last is 13 in a loop that does nothing
else, and 22 between the layers of a model, whose code has to be fetched again."""

CONVERT: Final = 0.25
"""Nanoseconds to convert an int8 weight."""

PACKED_MULTIPLY: Final = 0.008
"""Nanoseconds a weight and row takes in oneDNN's layout, float32."""


class Rate(NamedTuple):
    """Nanoseconds on one thread.

    Attributes:
        read: A weight, once a product.
        multiply: A weight and a row.
        call: A product, beyond what its call takes in float32.
    """

    read: float
    multiply: float
    call: float = 0.0


RATES: Final[dict[torch.dtype, Rate]] = {
    torch.float64: Rate(0.18, 0.040),
    torch.float32: Rate(0.09, 0.020),
    torch.bfloat16: Rate(0.12, 0.0066, 20_000.0),
    torch.float16: Rate(0.12, 0.020, 20_000.0),
}
"""By dtype of the products."""


class Shape(NamedTuple):
    """What is to be computed.

    Attributes:
        tokens: T.
        experts: E.
        top_k: Experts of a token.
        hidden: H.
        inner: I.
        dtype: Of the products.
        convert: Whether the weights are of another dtype.
        threads: That share a product.
    """

    tokens: int
    experts: int
    top_k: int
    hidden: int
    inner: int
    dtype: torch.dtype
    convert: bool = False
    threads: int = 1


def cost(way: Way, shape: Shape) -> float:
    """Nanoseconds that a way through the experts takes, by the model."""
    tokens, experts, top_k = shape.tokens, shape.experts, shape.top_k
    weights = 3 * shape.hidden * shape.inner
    rate = RATES[shape.dtype]
    read = rate.read + CONVERT * shape.convert
    if way == "dense":
        return DENSE_CALL + 2 * rate.call + experts * weights * (read + tokens * rate.multiply) / shape.threads
    chosen = experts * (1 - (1 - top_k / experts) ** tokens)
    call, multiply = EXPERT_CALL + 2 * rate.call, rate.multiply
    if way == "packed":
        call, multiply = EXPERT_CALL + 2 * packed_linear.CALL_NS, PACKED_MULTIPLY
    return SORTED_CALL + chosen * call + weights * (chosen * read + tokens * top_k * multiply) / shape.threads


@lru_cache(maxsize=4096)  # asked by every layer in every step
def choose(shape: Shape, *, packed: bool = False) -> Way:
    """The cheapest way.

    Args:
        shape: What is to be computed.
        packed: Whether packed weights are at hand.
    """
    ways: list[Way] = ["sorted"]
    # float16 overflows at 65504: an expert that was not chosen could turn 0 * inf into NaN.
    if shape.dtype is not torch.float16:
        ways.append("dense")
    if packed:
        ways.append("packed")
    return min(ways, key=lambda way: cost(way, shape))
