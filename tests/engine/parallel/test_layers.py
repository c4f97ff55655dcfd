"""Every split layer against the whole one, in float64: ranks are threads, sizes are drawn."""

from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.engine.layers.batch import ForwardBatch
from staticfire.engine.layers.linear import Linear, RowParallelLinear, row_parallel
from staticfire.engine.layers.moe import SparseMoe
from staticfire.engine.layers.vocabulary import Embedding, SplitEmbedding, SplitHead
from staticfire.engine.models.base import make_decoder
from staticfire.engine.models.parts import take_experts, take_mlp
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.cut import cut
from staticfire.engine.parallel.single import SINGLE
from staticfire.engine.parallel.split import Part, part
from staticfire.engine.quantization.base import split_experts
from staticfire.engine.quantization.registry import quantization_method
from thread_group import on_ranks

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]

SIZES = st.sampled_from([2, 3, 4])
SEEDS = st.integers(0, 2**16)
NOWHERE = ForwardBatch(torch.empty(0), torch.empty(0), False, torch.empty(0), torch.empty(0), ())
"""A batch for layers that read none of it but the routing hook."""


class Info(NamedTuple):
    """What the builders of feed-forward layers and vocabularies read of a `ModelInfo`."""

    hidden_size: int
    vocab_size: int
    hf: dict[str, Any]


class Tensors:
    """Weights by name, drawn when first taken and the same for everybody."""

    dtype = torch.float64

    def __init__(self, seed: int, **shapes: tuple[int, ...]) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.all = {
            name.replace("__", "."): torch.randn(shape, generator=generator, dtype=torch.float64)
            for name, shape in shapes.items()
        }

    def take(self, name: str, part: Part | None = None) -> torch.Tensor:
        whole = self.all[name]
        return whole.clone() if part is None else cut(whole, part)

    def finish(self) -> None:
        raise NotImplementedError


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed + 1), dtype=torch.float64)


def assert_all_close(found: list[torch.Tensor], wanted: torch.Tensor) -> None:
    for tensor in found:
        torch.testing.assert_close(tensor, wanted, rtol=1e-12, atol=1e-12)
        assert torch.equal(tensor, found[0])  # what follows, such as a choice of experts, is the same everywhere


@given(
    size=SIZES, share=st.integers(1, 5), out=st.integers(1, 9), rows=st.integers(1, 5), bias=st.booleans(), seed=SEEDS
)
def test_a_row_parallel_product(size: int, share: int, out: int, rows: int, bias: bool, seed: int):
    weight, x = draw(seed, out, size * share), draw(seed + 1, rows, size * share)
    added = draw(seed + 2, out) if bias else None

    def on_rank(group: Group) -> torch.Tensor:
        mine = part(1, size * share, group)
        assert mine is not None
        layer = row_parallel(cut(weight, mine), added, group)
        assert isinstance(layer, RowParallelLinear)
        return layer(cut(x, mine))

    assert_all_close(on_ranks(size, on_rank), x @ weight.t() + (0 if added is None else added))


def test_a_group_of_one_gets_plain_layers():
    assert type(row_parallel(draw(0, 2, 3), None, SINGLE)) is Linear
    tensors = Tensors(0, model__embed_tokens__weight=(5, 4), lm_head__weight=(5, 4), norm=(4,))
    decoder = make_decoder(Info(4, 5, {}), tensors, "norm", [], SINGLE)  # type: ignore[arg-type]
    assert type(decoder.embed) is Embedding
    assert type(decoder.lm_head) is Linear
    experts = quantization_method("experts_int8").experts(draw(0, 2, 6, 4), draw(1, 2, 4, 3))
    assert split_experts(experts, SINGLE) is experts
    assert SparseMoe(0, draw(2, 2, 4), experts, 1, renormalize=False)._all_reduce is None


@given(size=SIZES, vocabulary=st.integers(1, 23), tied=st.booleans(), seed=SEEDS)
def test_a_split_vocabulary(size: int, vocabulary: int, tied: bool, seed: int):
    """Padded where it does not divide; also where some ranks hold no token at all."""
    info = Info(6, vocabulary, {"tie_word_embeddings": tied})
    shapes = {"model__embed_tokens__weight": (vocabulary, 6), "lm_head__weight": (vocabulary, 6), "norm": (6,)}
    tensors = Tensors(seed, **shapes)
    tokens = torch.arange(vocabulary).flip(0)
    hidden = draw(seed, 3, 6)

    def on_rank(group: Group) -> tuple[torch.Tensor, torch.Tensor]:
        decoder = make_decoder(info, tensors, "norm", [], group)  # type: ignore[arg-type]
        assert isinstance(decoder.embed, SplitEmbedding)
        assert isinstance(decoder.lm_head, SplitHead)
        assert decoder.embed.weight.shape == (-(-vocabulary // size), 6)
        return decoder.embed(tokens), decoder.logits(hidden)

    embedded, logits = zip(*on_ranks(size, on_rank), strict=True)
    table = tensors.all["model.embed_tokens.weight"]
    head = table if tied else tensors.all["lm_head.weight"]
    for found in embedded:
        assert torch.equal(found, table[tokens])  # to the bit: every row is one rank's
    assert_all_close(list(logits), hidden @ head.t())


@given(size=SIZES, share=st.integers(1, 4), hidden=st.integers(1, 8), rows=st.integers(1, 5), seed=SEEDS)
def test_a_gated_mlp(size: int, share: int, hidden: int, rows: int, seed: int):
    inner = size * share
    info = Info(hidden, 1, {"intermediate_size": inner})
    tensors = Tensors(
        seed,
        mlp__gate_proj__weight=(inner, hidden),
        mlp__up_proj__weight=(inner, hidden),
        mlp__down_proj__weight=(hidden, inner),
    )
    x = draw(seed, rows, hidden)
    gate, up, down = (tensors.all[f"mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
    wanted = (torch.nn.functional.silu(x @ gate.t()) * (x @ up.t())) @ down.t()
    found = on_ranks(size, lambda group: take_mlp(info, tensors, "mlp", group)(x, NOWHERE))  # type: ignore[arg-type]
    assert_all_close(found, wanted)


@settings(deadline=None)
@given(
    size=SIZES,
    share=st.integers(1, 3),
    experts=st.integers(1, 4),
    rows=st.integers(1, 5),
    method=st.sampled_from([None, "experts_int8"]),
    seed=SEEDS,
)
def test_experts_split_over_their_inner_width(
    size: int, share: int, experts: int, rows: int, method: str | None, seed: int
):
    inner, hidden = size * share, 6
    info = Info(hidden, 1, {"intermediate_size": inner})
    shapes: dict[str, tuple[int, ...]] = {"router": (experts, hidden)}
    for expert in range(experts):
        shapes |= {f"e{expert}__{name}_proj__weight": (inner, hidden) for name in ("gate", "up")}
        shapes[f"e{expert}__down_proj__weight"] = (hidden, inner)
    tensors = Tensors(seed, **shapes)
    x = draw(seed, rows, hidden)
    names = [f"e{expert}" for expert in range(experts)]

    def on_rank(group: Group) -> torch.Tensor:
        weights = take_experts(info, tensors, names, quantization_method(method), group)  # type: ignore[arg-type]
        return SparseMoe(0, tensors.take("router"), weights, min(2, experts), renormalize=False, group=group)(
            x, NOWHERE
        )

    assert_all_close(on_ranks(size, on_rank), on_rank(SINGLE))


@given(size=SIZES, share=st.integers(1, 4), seed=SEEDS)
def test_quantized_parts_are_parts_of_what_is_quantized_whole(size: int, share: int, seed: int):
    """Integers and scales by NumPy, from the whole matrices; then cut."""
    inner, hidden = size * share, 5
    info = Info(hidden, 1, {"intermediate_size": inner})
    tensors = Tensors(
        seed,
        e__gate_proj__weight=(inner, hidden),
        e__up_proj__weight=(inner, hidden),
        e__down_proj__weight=(hidden, inner),
    )
    method = quantization_method("experts_int8")
    found = on_ranks(size, lambda group: take_experts(info, tensors, ["e"], method, group))  # type: ignore[arg-type]

    def scale(name: str) -> torch.Tensor:
        return tensors.all[f"e.{name}_proj.weight"].float().abs().amax(1) / 127

    columns = [w for experts in found for w in experts.w2[0].t()]
    down = tensors.all["e.down_proj.weight"].float()
    assert torch.equal(torch.stack(columns, 1), (down / scale("down")[:, None]).round().clamp(-127, 127).to(torch.int8))
    for rank, experts in enumerate(found):
        assert experts.w2_scale is not None
        assert experts.w13_scale is not None
        assert torch.equal(experts.w2_scale[0], scale("down"))
        rows = slice(rank * share, (rank + 1) * share)
        assert torch.equal(experts.w13_scale[0], torch.cat([scale("gate")[rows], scale("up")[rows]]))
