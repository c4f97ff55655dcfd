"""Cases of attention, the experts and the int8 layer."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from staticfire.kernels import fused_moe, int8_linear, int8_quant, paged_attention, reshape_and_cache, topk_softmax
from staticfire.kernels.bench import rivals
from staticfire.kernels.bench.case import Case
from staticfire.kernels.bench.scale import Scale
from staticfire.kernels.fused_moe import cost as moe_cost
from staticfire.kernels.int8_linear import cost as linear_cost
from staticfire.kernels.paged_attention import cost as attention_cost
from staticfire.kernels.reshape_and_cache import cost as write_cost
from staticfire.kernels.variant import Cost


def cases(scale: Scale) -> list[Case]:
    """Make them."""
    return [*_attention(scale), *_experts(scale), _linear(scale)]


def _sum(costs: list[Cost]) -> Cost:
    read, written = sum(one.read for one in costs), sum(one.written for one in costs)
    return Cost(read, written, sum(one.operations for one in costs), costs[0].unit)


def _attention(scale: Scale) -> list[Case]:
    randn = partial(torch.randn, device=scale.device, dtype=scale.dtype)
    longest = max(scale.positions, *scale.prompts)
    columns = -(-longest // scale.block)
    cache = randn(scale.sequences * columns, 2, scale.block, scale.key_heads, scale.head_size)
    tables = torch.randperm(scale.sequences * columns, device=scale.device).view(scale.sequences, columns)
    made = []
    for shape, queries, lengths in (
        (
            f"{scale.sequences} decodes at {scale.positions}",
            (1,) * scale.sequences,
            (scale.positions,) * scale.sequences,
        ),
        (f"{scale.prompt_tokens} tokens of {len(scale.prompts)} prompts", scale.prompts, scale.prompts),
    ):
        cu = torch.tensor([0, *queries], device=scale.device).cumsum(0)
        lens = torch.tensor(lengths, device=scale.device)
        q, table = randn(sum(queries), scale.heads, scale.head_size), tables[: len(queries)]
        meta = paged_attention.make_metadata(cache, table, cu, lens, q.dtype)

        def attend(
            backend: Any, q: Tensor = q, table: Tensor = table, cu: Any = cu, lens: Any = lens, meta: Any = meta
        ) -> Tensor:
            return paged_attention.paged_attention(
                q, cache, table, cu, lens, scale.head_size**-0.5, metadata=meta, backend=backend
            )

        costs = [
            attention_cost.paged_attention(
                sequences=1,
                queries=count,
                positions=length,
                heads=scale.heads,
                key_heads=scale.key_heads,
                head_size=scale.head_size,
                dtype=scale.name,
            )
            for count, length in zip(queries, lengths, strict=True)
        ]
        made.append(Case("paged_attention", shape, _sum(costs), attend))
    tokens = scale.sequences
    key, mapping = (
        randn(tokens, scale.key_heads, scale.head_size),
        torch.arange(tokens, device=scale.device) * scale.block,
    )
    writes = reshape_and_cache.make_metadata(mapping, cache)

    def write(backend: Any) -> Tensor:
        reshape_and_cache.reshape_and_cache(key, key, cache, mapping, metadata=writes, backend=backend)
        return cache

    cost = write_cost.reshape_and_cache(
        tokens=tokens, key_heads=scale.key_heads, head_size=scale.head_size, dtype=scale.name
    )
    return [*made, Case("reshape_and_cache", f"{tokens} tokens, {scale.key_heads} heads", cost, write)]


def _experts(scale: Scale) -> list[Case]:
    randn = partial(torch.randn, device=scale.device, dtype=scale.dtype)
    hidden, inner, experts = scale.hidden, scale.intermediate, scale.experts
    w13 = randn(experts, 2 * inner, hidden) * hidden**-0.5
    w2 = randn(experts, hidden, inner) * inner**-0.5
    (q13, s13), (q2, s2) = int8_quant.quantize_per_channel(w13), int8_quant.quantize_per_channel(w2)
    made = []
    for tokens in (scale.sequences, 10 * scale.sequences):
        x = randn(tokens, hidden)
        weights, ids = topk_softmax.topk_softmax(randn(tokens, experts), scale.top_k, False)
        for name, first, second, scales in (
            (scale.name, w13, w2, (None, None)),
            ("int8", q13, q2, (s13, s2)),
        ):
            packed = fused_moe.pack_experts(first, second)

            def run(backend: Any, x: Tensor = x, args: Any = (*packed, weights, ids, *scales)) -> Tensor:
                return fused_moe.fused_moe(x, *args, backend=backend)

            cost = moe_cost.fused_moe(
                tokens=tokens,
                hidden=hidden,
                inner=inner,
                experts=experts,
                top_k=scale.top_k,
                dtype=scale.name,
                weight_dtype=name,
            )
            others = rivals.fused_moe(x, w13, w2, weights, ids) if name != "int8" else ()
            made.append(Case("fused_moe", f"{tokens} tokens, {experts} experts, {name}", cost, run, rivals=others))
    return made


def _linear(scale: Scale) -> Case:
    tokens, inputs, outputs = scale.sequences, scale.hidden, scale.inner
    x = torch.randn(tokens, inputs, device=scale.device, dtype=scale.dtype)
    w, factor = int8_quant.quantize_per_channel(torch.randn(outputs, inputs, device=scale.device))
    return Case(
        "int8_linear",
        f"{tokens} tokens, {inputs} x {outputs}",
        linear_cost.int8_linear(tokens=tokens, inputs=inputs, outputs=outputs, dtype=scale.name),
        lambda b: int8_linear.int8_linear(x, w, factor, backend=b),
    )
