"""The memory layout of expert weights in which a few tokens meet all experts in two plain matrix products."""

from torch import Tensor


def pack_experts(w13: Tensor, w2: Tensor) -> tuple[Tensor, Tensor]:
    """Rearrange the memory of expert weights; shapes and values stay.

    Args:
        w13: [E, 2I, H], any dtype.
        w2: [E, H, I].

    Returns:
        The same tensors with memory [H, E, 2I] and [E, I, H]: `fused_moe` then multiplies by each as one matrix
        without a copy.
    """
    return w13.permute(2, 0, 1).contiguous().permute(1, 2, 0), w2.transpose(1, 2).contiguous().transpose(1, 2)
