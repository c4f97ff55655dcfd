"""Inputs for tests of ops: sequence layouts, and tensors that lie in poison as they lie in an engine."""

from dataclasses import dataclass

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from staticfire.kernels.testing import poisoned
from staticfire.kernels.tolerances import DTYPES

examples = settings(max_examples=max(20, settings().max_examples // 5), deadline=None)
dtypes = st.sampled_from(DTYPES)
seeds = st.integers(0, 2**32 - 1)


class Maker:
    """Makes random tensors of one dtype; `sliced` ones are columns of a wider, poisoned buffer."""

    def __init__(self, seed: int, dtype: torch.dtype, *, sliced: bool = False) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = dtype
        self.sliced = sliced

    def __call__(self, *shape: int, scale: float = 1.0) -> Tensor:
        values = (torch.randn(*shape, generator=self.generator, dtype=torch.float64) * scale).to(self.dtype)
        if not self.sliced:
            return values
        wide = poisoned(shape[0] + 1, *shape[1:-1], shape[-1] + 3, dtype=self.dtype)
        view = wide[1:, ..., 2 : 2 + shape[-1]]
        return view.copy_(values)


@st.composite
def makers(draw: st.DrawFn) -> Maker:
    return Maker(draw(seeds), draw(dtypes), sliced=draw(st.booleans()))


@dataclass(frozen=True)
class Layout:
    """Sequences packed one after the other, each with a slot of a pool (negative: padding)."""

    lengths: tuple[int, ...]
    slots: tuple[int, ...]
    initial: tuple[bool, ...]
    pool: int

    @property
    def tokens(self) -> int:
        return sum(self.lengths)

    @property
    def cu_seqlens(self) -> Tensor:
        return torch.tensor([0, *self.lengths]).cumsum(0)

    @property
    def state_indices(self) -> Tensor:
        return torch.tensor(self.slots, dtype=torch.int32)

    @property
    def has_initial_state(self) -> Tensor:
        return torch.tensor(self.initial, dtype=torch.bool)

    @property
    def written(self) -> set[int]:
        return {s for s, n in zip(self.slots, self.lengths, strict=True) if n > 0 and s >= 0}


@st.composite
def layouts(draw: st.DrawFn, max_length: int = 9, max_sequences: int = 5) -> Layout:
    pool = draw(st.integers(max_sequences, max_sequences + 2))
    count = draw(st.integers(0, max_sequences))
    lengths = draw(st.lists(st.integers(0, max_length), min_size=count, max_size=count))
    order = draw(st.permutations(range(pool)))[:count]
    padding = draw(st.lists(st.sampled_from([False, False, False, True]), min_size=count, max_size=count))
    slots = [-1 if pad else slot for slot, pad in zip(order, padding, strict=True)]
    initial = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return Layout(tuple(lengths), tuple(slots), tuple(initial), pool)


def split(lengths: tuple[int, ...], cuts: list[list[int]]) -> list[tuple[int, ...]]:
    """Token counts of each sequence in each of several rounds; `cuts[b]` are the inner cut points of sequence b."""
    rounds = max(len(c) for c in cuts) + 1
    edges = [[0, *sorted(min(x, n) for x in c)] for c, n in zip(cuts, lengths, strict=True)]
    edges = [e + [n] * (rounds + 1 - len(e)) for e, n in zip(edges, lengths, strict=True)]
    return [tuple(e[r + 1] - e[r] for e in edges) for r in range(rounds)]
