"""The angles of one step, laid out for one multiply and one multiply-add."""

from typing import NamedTuple

import torch
from torch import Tensor

from staticfire.kernels.dtypes import compute_dtype


class RotaryMetadata(NamedTuple):
    """Angles of the tokens of one step.

    Attributes:
        cos: [T, 1, d], cat(cos, cos).
        sin: [T, 1, d], cat(-sin, sin).
    """

    cos: Tensor
    sin: Tensor


def make_metadata(positions: Tensor, cos_sin: Tensor, dtype: torch.dtype) -> RotaryMetadata:
    """Gather the angles of a step once for all layers.

    Args:
        positions: int[T].
        cos_sin: [max_pos, d] as for `rotary_embedding`.
        dtype: dtype of the queries; half types are rotated in float32.

    Returns:
        The angles in the compute dtype.
    """
    wide = compute_dtype(torch.empty(0, dtype=dtype))
    cos, sin = cos_sin.index_select(0, positions).to(wide).unsqueeze(1).chunk(2, -1)
    return RotaryMetadata(torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1))
