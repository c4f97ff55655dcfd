"""Measure the ways through the experts of a mixture, and how far the chosen one is from the quickest.

`python tools/bench_moe.py` times each way of `kernels/fused_moe` over sizes, tokens and dtypes on one thread, in CPU
time, beside what `kernels/fused_moe/choice.py` says it costs. The last lines are the regret of the choice (its time by
that of the best way) and the constants that a least-squares fit of the measured times gives, to be compared with those
in that file.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence

import numpy as np
import torch
from bench_common import microseconds

from staticfire.kernels.fused_moe import choice, pack_experts
from staticfire.kernels.fused_moe import torch as quick
from staticfire.kernels.fused_moe.packed import PackedExperts, can_pack_experts

SIZES = ((64, 128, 4), (128, 256, 8), (256, 512, 8), (512, 1024, 8))
"""Hidden, inner, experts; two experts a token."""

TOKENS = (1, 4, 16, 64)
DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16}

Run = Callable[[], object]


def ways(shape: choice.Shape) -> dict[choice.Way, Run]:
    """Each way as a call without arguments."""
    tokens, experts, top_k, hidden, inner, dtype, *_ = shape
    generator = torch.Generator().manual_seed(tokens)

    def draw(*size: int) -> torch.Tensor:
        return (torch.randn(size, generator=generator) / math.sqrt(size[-1])).to(dtype)

    w13, w2, x = draw(experts, 2 * inner, hidden), draw(experts, hidden, inner), draw(tokens, hidden)
    wide = torch.float64 if dtype is torch.float64 else torch.float32
    weights, ids = torch.rand(tokens, experts, generator=generator, dtype=wide).softmax(-1).topk(top_k, -1)
    laid13, laid2 = pack_experts(w13, w2)
    plain = quick.PlainExperts(laid13, laid2, None, None)
    made: dict[choice.Way, Run] = {
        "dense": lambda: quick.dense(x, laid13, laid2, weights, ids, None, None),
        "sorted": lambda: quick.sorted_by_expert(x, plain, weights, ids),
    }
    if can_pack_experts(w13, w2):
        packed = PackedExperts(w13, w2)
        made["packed"] = lambda: quick.sorted_by_expert(x, packed, weights, ids)
    return made


def terms(way: choice.Way, shape: choice.Shape) -> list[float]:
    """What the constants of `choice` are multiplied by: dense call, sorted call, expert, read, multiply, packed."""
    weights = 3 * shape.hidden * shape.inner
    if way == "dense":
        return [1, 0, 0, shape.experts * weights, shape.experts * weights * shape.tokens, 0]
    chosen = shape.experts * (1 - (1 - shape.top_k / shape.experts) ** shape.tokens)
    products = shape.tokens * shape.top_k * weights
    return [0, 1, chosen, chosen * weights, products * (way == "sorted"), products * (way == "packed")]


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dtypes", nargs="*", default=list(DTYPES), help=f"of {', '.join(DTYPES)} (default: all)")
    parser.add_argument("--threads", type=int, default=1, help="threads (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds, whose median is taken (default 5)")
    options = parser.parse_args(argv)
    torch.set_num_threads(options.threads)
    for name in options.dtypes:
        print(f"\n| {name} | tokens | dense | sorted | packed | chosen | regret |\n|---|--:|--:|--:|--:|---|--:|")
        regrets, left, right = [], [], []
        for hidden, inner, experts in SIZES:
            for tokens in TOKENS:
                shape = choice.Shape(tokens, experts, 2, hidden, inner, DTYPES[name], threads=options.threads)
                with torch.inference_mode():
                    took = {way: microseconds(run, options.rounds, 5) for way, run in ways(shape).items()}
                chosen = choice.choose(shape, packed="packed" in took)
                regrets.append(took[chosen] / min(took.values()))
                for way, time in took.items():  # relative errors, so that small shapes count as much
                    left.append([term / (1e3 * time) for term in terms(way, shape)])
                    right.append(1.0)
                cells = " | ".join(
                    f"{took[way]:.0f} ({choice.cost(way, shape) / 1e3:.0f})" if way in took else ""
                    for way in ("dense", "sorted", "packed")
                )  # fmt: skip
                print(
                    f"| {hidden} x {inner} x {experts} | {tokens} | {cells} | {chosen} | {regrets[-1]:.2f} |",
                    flush=True,
                )
        fitted = np.linalg.lstsq(np.array(left), np.array(right), rcond=None)[0]
        labels = ("DENSE_CALL", "SORTED_CALL", "EXPERT_CALL", "read", "multiply", "PACKED_MULTIPLY")
        print(f"\n{name}: regret {np.median(regrets):.2f} in the median, {max(regrets):.2f} at most")
        print("fitted, ns: " + ", ".join(f"{label} {value:.3g}" for label, value in zip(labels, fitted, strict=True)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
