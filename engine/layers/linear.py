"""A matrix product whose weight lies as the processor likes it."""

import torch

from staticfire.engine.parallel.base import Group


class Linear:
    """y = x W^T + b, with W kept as [in, out]: for few rows that is 1.5 times as quick on CPU as [out, in].

    A column-parallel product is one of these that holds some of the rows of W.
    """

    __slots__ = ("bias", "weight")

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        """Hold `weight` [out, in] and `bias` [out]; an embedding that is shared is best kept with `Linear.tied`."""
        self.weight = weight.t().contiguous()
        self.bias = bias

    @classmethod
    def tied(cls, weight: torch.Tensor) -> "Linear":
        """Use `weight` [out, in] itself, without a copy."""
        linear = cls.__new__(cls)
        linear.weight, linear.bias = weight.t(), None
        return linear

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[n, in] -> [n, out]."""
        if self.bias is None:
            return torch.mm(x, self.weight)
        return torch.addmm(self.bias, x, self.weight)


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
