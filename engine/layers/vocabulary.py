"""Embedding and output matrix, split by tokens where there are several ranks."""

import torch
from torch.nn.functional import embedding

from staticfire.engine.layers.linear import Linear
from staticfire.engine.parallel.base import Group
from staticfire.engine.parallel.split import VocabularyPart


class Embedding:
    """Token ids to rows of a table."""

    __slots__ = ("weight",)

    def __init__(self, weight: torch.Tensor) -> None:
        """Hold `weight` [vocabulary, hidden]."""
        self.weight = weight

    def __call__(self, token_ids: torch.Tensor) -> torch.Tensor:
        """[tokens] -> [tokens, hidden]."""
        return embedding(token_ids, self.weight)


class SplitEmbedding(Embedding):
    """The same with this rank's rows; the others' tokens come from them."""

    __slots__ = ("_group", "_part")

    def __init__(self, weight: torch.Tensor, part: VocabularyPart, group: Group) -> None:
        """Hold `weight` [rows of the part, hidden]."""
        super().__init__(weight)
        self._part = part
        self._group = group

    def __call__(self, token_ids: torch.Tensor) -> torch.Tensor:
        """[tokens] -> [tokens, hidden]. Each row is one rank's, and zeros on all others: the sum is exact."""
        local = token_ids - self._part.start
        mine = (local >= 0) & (local < self._part.stop - self._part.start)
        found = embedding(local * mine, self.weight)
        return self._group.all_reduce(found * mine[:, None])


class SplitHead:
    """Logits of all tokens, of which this rank computes its own."""

    __slots__ = ("_group", "_linear", "_vocabulary")

    def __init__(self, linear: Linear, vocabulary: int, group: Group) -> None:
        """Hold this rank's rows, equally many on all ranks, as `linear`; `vocabulary` cuts the padding off."""
        self._linear = linear
        self._vocabulary = vocabulary
        self._group = group

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[n, hidden] -> [n, vocabulary]."""
        return self._group.all_gather(self._linear(hidden))[:, : self._vocabulary]
