"""A matrix product whose weight lies as the processor likes it."""

import torch

from staticfire.engine.parallel.base import Group
from staticfire.kernels.packed_linear import ALWAYS, PackedLinear, can_pack, is_worthwhile


class Linear:
    """y = x W^T + b, with W kept as [in, out]: for few rows that is 1.5 times as quick on CPU as [out, in].

    A W that is large enough is kept as oneDNN wants it (`kernels.packed_linear`), and as [in, out] only where that is
    quicker for few rows. A column-parallel product is one of these that holds some of the rows of W.
    """

    __slots__ = ("_packed", "_plain", "bias")

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        """Hold `weight` [out, in] and `bias` [out]; an embedding that is shared is best kept with `Linear.tied`."""
        self._packed = PackedLinear(weight) if can_pack(weight) else None
        alone = self._packed is not None and weight.numel() >= ALWAYS
        self._plain = None if alone else weight.t().contiguous()
        self.bias = bias

    @classmethod
    def tied(cls, weight: torch.Tensor) -> "Linear":
        """Use `weight` [out, in] itself, without a copy."""
        linear = cls.__new__(cls)
        linear._packed, linear._plain, linear.bias = None, weight.t(), None  # noqa: SLF001 - its own
        return linear

    @property
    def weight(self) -> torch.Tensor:
        """W as [in, out]; a copy where only the packed one is kept."""
        if self._plain is not None:
            return self._plain
        assert self._packed is not None
        return self._packed.dense().t()

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[n, in] -> [n, out]."""
        packed, plain = self._packed, self._plain
        if packed is not None and (plain is None or is_worthwhile(packed.size, x.shape[0])):
            return packed(x, self.bias)
        assert plain is not None
        if self.bias is None:
            return torch.mm(x, plain)
        return torch.addmm(self.bias, x, plain)


class RowParallelLinear(Linear):
    """The same of some columns of W and of `x`, summed over the ranks; the first rank adds the bias."""

    __slots__ = ("_group",)

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, group: Group) -> None:
        """Hold this rank's columns of W as `weight` [out, in / ranks], and all of `bias` [out]."""
        super().__init__(weight, bias if group.rank == 0 else None)
        self._group = group

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[n, in / ranks] -> [n, out]."""
        return self._group.all_reduce(super().__call__(x))


def row_parallel(weight: torch.Tensor, bias: torch.Tensor | None, group: Group) -> Linear:
    """A product split by its input; in a group of one a plain `Linear`, which asks nobody."""
    return Linear(weight, bias) if group.size == 1 else RowParallelLinear(weight, bias, group)
