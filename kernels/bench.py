"""Time every op's quick path beside its reference: `python -m staticfire.kernels.bench [OP ...]`.

Shapes are those of a four-layer tiny hybrid with 16 sequences, which is where the time of a call itself matters. Each
number is the least of several repeats, in microseconds of processor time of one thread, so that other processes on
the machine disturb it little; it still grows when they take the caches. Before an op is timed its two paths are
compared: a wrong path gets no number.
"""

import argparse
import sys
import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

import torch
from torch import Tensor

from staticfire.kernels import (
    causal_conv1d,
    fused_moe,
    int8_quant,
    paged_attention,
    reshape_and_cache,
    rms_norm,
    rotary,
    selective_scan,
    silu_and_mul,
    slots,
    state_copy,
    topk_softmax,
)
from staticfire.kernels.testing import assert_close

SEQUENCES, HIDDEN, INNER, STATES, WIDTH = 16, 64, 128, 8, 4
HEADS, HEAD_SIZE, BLOCK, POSITIONS = 4, 16, 16, 150
EXPERTS, TOP_K, INTERMEDIATE = 4, 2, 128
PROMPTS = (20, 50, 80, 100)


def _nothing() -> None:
    return


class Case(NamedTuple):
    """One line of the table.

    Attributes:
        op: Name of the public function.
        shape: What it is called on, in words.
        call: Runs it once on the given backend and returns its first output.
        reset: Puts a state that calls change back to its start, for the comparison; its time is not counted.
    """

    op: str
    shape: str
    call: Callable[[Any], Tensor]
    reset: Callable[[], object] = _nothing


def _pool(*shape: int) -> Tensor:
    """States [N, D, n] with channels last in memory, as the engine keeps them."""
    slots_, channels, inner = shape
    return torch.randn(slots_, inner, channels).transpose(1, 2)


def _elementwise() -> list[Case]:
    x, weight, gated = torch.randn(SEQUENCES, HIDDEN), torch.randn(HIDDEN), torch.randn(SEQUENCES, 2 * INNER)
    q, k = torch.randn(SEQUENCES, HEADS, HEAD_SIZE), torch.randn(SEQUENCES, HEADS, HEAD_SIZE)
    positions, cos_sin = torch.arange(SEQUENCES), torch.randn(512, HEAD_SIZE)
    angles = rotary.make_metadata(positions, cos_sin, q.dtype)
    logits, experts = torch.randn(SEQUENCES, EXPERTS), torch.randn(EXPERTS, INTERMEDIATE, HIDDEN)
    states, source, target = torch.randn(40, INNER, STATES), torch.arange(4), torch.arange(4) + 20

    def copied(backend: Any) -> Tensor:
        state_copy.state_copy(states, source, target, backend=backend)
        return states

    step = f"{SEQUENCES} tokens"
    return [
        Case("rms_norm", f"{step} x {HIDDEN}", lambda b: rms_norm.rms_norm(x, weight, 1e-6, backend=b)),
        Case(
            "fused_add_rms_norm",
            f"{step} x {HIDDEN}",
            lambda b: rms_norm.fused_add_rms_norm(x, x, weight, 1e-6, backend=b)[0],
        ),
        Case("silu_and_mul", f"{step} x {2 * INNER}", lambda b: silu_and_mul.silu_and_mul(gated, backend=b)),
        Case(
            "rotary_embedding",
            f"{step}, {HEADS} heads",
            lambda b: rotary.rotary_embedding(q, k, positions, cos_sin, metadata=angles, backend=b)[0],
        ),
        Case(
            "topk_softmax",
            f"{step}, {EXPERTS} experts",
            lambda b: topk_softmax.topk_softmax(logits, TOP_K, False, backend=b)[0],
        ),
        Case(
            "quantize_per_channel",
            f"{EXPERTS} experts",
            lambda b: int8_quant.quantize_per_channel(experts, backend=b)[0],
        ),
        Case("state_copy", f"4 states of {INNER} x {STATES}", copied),
    ]


def _recurrent() -> list[Case]:
    tokens = sum(PROMPTS)
    cu = torch.tensor([0, *PROMPTS]).cumsum(0)
    x, small = torch.randn(tokens, INNER), torch.randn(tokens, STATES)
    conv, ssm = _pool(40, INNER, WIDTH - 1), _pool(40, INNER, STATES)
    weight, bias = torch.randn(WIDTH, INNER).t(), torch.randn(INNER)
    decay = -torch.rand(STATES, INNER).t()
    index, one = torch.arange(len(PROMPTS)), torch.arange(SEQUENCES)
    fresh, known = torch.zeros(len(PROMPTS), dtype=torch.bool), slots.make_slots(one)
    conv_meta = causal_conv1d.make_metadata(cu, index, fresh, WIDTH)
    scan_meta = selective_scan.make_metadata(cu, index, fresh)
    u, b1 = x[:SEQUENCES], small[:SEQUENCES]

    first_ssm, first_conv = ssm.clone(), conv.clone()

    def update(backend: Any) -> Tensor:
        return selective_scan.selective_state_update(
            ssm, u, u, decay, b1, b1, bias, u, bias, True, one, slots=known, backend=backend
        )

    def roll(backend: Any) -> Tensor:
        return causal_conv1d.causal_conv1d_update(u, conv, weight, bias, one, "silu", slots=known, backend=backend)

    prompts = f"{tokens} tokens of {len(PROMPTS)} prompts"
    return [
        Case("causal_conv1d_update", f"{SEQUENCES} tokens x {INNER}", roll, lambda: conv.copy_(first_conv)),
        Case(
            "selective_state_update", f"{SEQUENCES} tokens x {INNER} x {STATES}", update, lambda: ssm.copy_(first_ssm)
        ),
        Case(
            "causal_conv1d_varlen",
            prompts,
            lambda b: causal_conv1d.causal_conv1d_varlen(
                x, weight, bias, cu, conv, index, fresh, "silu", metadata=conv_meta, backend=b
            ),
        ),
        Case(
            "selective_scan_varlen",
            prompts,
            lambda b: selective_scan.selective_scan_varlen(
                x,
                x,
                decay,
                small,
                small,
                bias,
                x,
                bias,
                True,
                cu,
                ssm,
                index,
                fresh,
                metadata=scan_meta,
                backend=b,
            ),
        ),
    ]


def _attention() -> list[Case]:
    blocks = SEQUENCES * (POSITIONS // BLOCK + 1)
    cache = torch.randn(blocks, 2, BLOCK, HEADS, HEAD_SIZE)
    tables = torch.randperm(blocks).view(SEQUENCES, -1)
    cases = []
    for shape, queries, lengths in (
        (f"{SEQUENCES} decodes at {POSITIONS}", (1,) * SEQUENCES, (POSITIONS,) * SEQUENCES),
        (f"{sum(PROMPTS)} tokens of {len(PROMPTS)} prompts", PROMPTS, PROMPTS),
    ):
        cu, lens = torch.tensor([0, *queries]).cumsum(0), torch.tensor(lengths)
        q, table = torch.randn(sum(queries), HEADS, HEAD_SIZE), tables[: len(queries)]
        meta = paged_attention.make_metadata(cache, table, cu, lens, q.dtype)

        def attend(
            backend: Any, q: Tensor = q, table: Tensor = table, cu: Any = cu, lens: Any = lens, meta: Any = meta
        ) -> Tensor:
            return paged_attention.paged_attention(q, cache, table, cu, lens, 0.25, metadata=meta, backend=backend)

        cases.append(Case("paged_attention", shape, attend))
    key, mapping = torch.randn(SEQUENCES, HEADS, HEAD_SIZE), torch.arange(SEQUENCES) * BLOCK
    writes = reshape_and_cache.make_metadata(mapping, cache)

    def write(backend: Any) -> Tensor:
        reshape_and_cache.reshape_and_cache(key, key, cache, mapping, metadata=writes, backend=backend)
        return cache

    return [*cases, Case("reshape_and_cache", f"{SEQUENCES} tokens, {HEADS} heads", write)]


def _experts() -> list[Case]:
    cases = []
    w13 = torch.randn(EXPERTS, 2 * INTERMEDIATE, HIDDEN) * HIDDEN**-0.5
    w2 = torch.randn(EXPERTS, HIDDEN, INTERMEDIATE) * INTERMEDIATE**-0.5
    (q13, s13), (q2, s2) = int8_quant.quantize_per_channel(w13), int8_quant.quantize_per_channel(w2)
    for tokens in (SEQUENCES, 10 * SEQUENCES):
        x = torch.randn(tokens, HIDDEN)
        weights, ids = topk_softmax.topk_softmax(torch.randn(tokens, EXPERTS), TOP_K, False)
        for name, first, second, scales in (
            ("float32", w13, w2, (None, None)),
            ("int8", q13, q2, (s13, s2)),
        ):
            packed = fused_moe.pack_experts(first, second)

            def run(backend: Any, x: Tensor = x, args: Any = (*packed, weights, ids, *scales)) -> Tensor:
                return fused_moe.fused_moe(x, *args, backend=backend)

            cases.append(Case("fused_moe", f"{tokens} tokens, {EXPERTS} experts, {name}", run))
    return cases


def cases() -> list[Case]:
    """Make every line of the table, the inputs from one seed."""
    torch.manual_seed(0)
    return [*_elementwise(), *_recurrent(), *_attention(), *_experts()]


def microseconds(call: Callable[[], object], *, budget: float = 0.2) -> float:
    """Time a call.

    Args:
        call: What to run.
        budget: Seconds to spend on it, about.

    Returns:
        The least processor time of one call among 20 repeats, in microseconds.
    """
    call()
    begin = time.process_time()
    call()
    once = max(time.process_time() - begin, 1e-6)
    inner = max(1, int(budget / 20 / once))
    best = torch.inf
    for _ in range(20 if once < budget else 1):
        begin = time.process_time()
        for _ in range(inner):
            call()
        best = min(best, (time.process_time() - begin) / inner)
    return best * 1e6


def measure(case: Case) -> Mapping[str, float]:
    """Compare the two paths of a case, then time both.

    Args:
        case: A line of the table.

    Returns:
        backend -> microseconds.

    Raises:
        AssertionError: The paths disagree.
    """
    case.reset()
    quick = case.call("torch").clone()
    case.reset()
    assert_close(case.op, quick, case.call("reference"), dtype=torch.float32)
    return {
        "torch": microseconds(lambda: case.call("torch")),
        "reference": microseconds(lambda: case.call("reference"), budget=0.05),
    }


def main(argv: list[str] | None = None) -> int:
    """Print the table; return 0, or 2 for an op that does not exist."""
    everything = cases()
    names = sorted({case.op for case in everything})
    parser = argparse.ArgumentParser(prog="python -m staticfire.kernels.bench", description=__doc__.split("\n")[0])
    parser.add_argument("op", nargs="*", help="only these: " + ", ".join(names))
    wanted = parser.parse_args(argv).op or names
    for name in wanted:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            parser.error(f"unknown op {name!r}; known: {', '.join(names)}{hint}")
    torch.set_num_threads(1)
    out = sys.stdout
    out.write(f"{'op':24}{'shape':40}{'torch us':>10}{'reference us':>14}{'ratio':>8}\n")
    with torch.inference_mode():
        for case in everything:
            if case.op in wanted:
                took = measure(case)
                ratio = took["reference"] / took["torch"]
                out.write(f"{case.op:24}{case.shape:40}{took['torch']:10.1f}{took['reference']:14.0f}{ratio:8.0f}\n")
                out.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
