"""Rotary position embedding, NeoX layout (the two halves of a head are rotated together)."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.rotary import reference as _reference
from staticfire.kernels.rotary import torch as _torch
from staticfire.kernels.rotary.metadata import RotaryMetadata, make_metadata

__all__ = ["RotaryMetadata", "make_metadata", "rotary_embedding"]

_IMPL = Registry(
    "rotary_embedding",
    {"torch": _torch.rotary_embedding, "reference": _reference.rotary_embedding},
    {"triton": "staticfire.kernels.rotary.triton:rotary_embedding"},
)


def rotary_embedding(
    q: Tensor,
    k: Tensor,
    positions: Tensor,
    cos_sin: Tensor,
    *,
    metadata: RotaryMetadata | None = None,
    backend: Backend = "torch",
) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys by their positions.

    Args:
        q: [T, Hq, d].
        k: [T, Hk, d], same dtype.
        positions: int[T], each in [0, max_pos).
        cos_sin: [max_pos, d], row p is cat(cos(p * freq), sin(p * freq)) with d/2 frequencies. Keep it in
            float32 for half types and in float64 for float64.
        metadata: What `make_metadata(positions, cos_sin, q.dtype)` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Returns:
        (q, k) rotated, in the dtype of the inputs. No input is changed.

    Raises:
        ValueError: `backend` is unknown.
    """
    return _IMPL[backend](q, k, positions, cos_sin, metadata)
