"""The selective state-space recurrence of Mamba-1, over packed sequences and one token at a time."""

from torch import Tensor

from staticfire.kernels.dispatch import Backend, Registry
from staticfire.kernels.selective_scan import reference as _reference
from staticfire.kernels.selective_scan import torch as _torch
from staticfire.kernels.selective_scan.metadata import ScanMetadata, make_metadata
from staticfire.kernels.slots import Slots

__all__ = ["ScanMetadata", "make_metadata", "selective_scan_varlen", "selective_state_update"]

_TRITON = "staticfire.kernels.selective_scan.triton"
_SCAN = Registry(
    "selective_scan_varlen",
    {"torch": _torch.selective_scan_varlen, "reference": _reference.selective_scan_varlen},
    {"triton": f"{_TRITON}:selective_scan_varlen"},
)
_UPDATE = Registry(
    "selective_state_update",
    {"torch": _torch.selective_state_update, "reference": _reference.selective_state_update},
    {"triton": f"{_TRITON}:selective_state_update"},
)


def selective_scan_varlen(
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
    cu_seqlens: Tensor,
    ssm_state: Tensor,
    state_indices: Tensor,
    has_initial_state: Tensor,
    *,
    metadata: ScanMetadata | None = None,
    backend: Backend = "torch",
) -> Tensor:
    """Scan packed sequences and leave their last state in the pool.

    A sequence without tokens, or with a negative slot, reads and writes nothing; the outputs of the latter are 0.

    Args:
        u: [T, D], sequences one after the other.
        delta: [T, D], time steps before bias and softplus.
        A: [D, N], negative decay rates (-exp(A_log)), in the compute dtype. Quickest when its memory is [N, D].
        B: [T, N], input projection.
        C: [T, N], output projection.
        D: [D] skip connection, or None.
        z: [T, D] gate, or None.
        delta_bias: [D] or None.
        delta_softplus: Whether time steps go through softplus.
        cu_seqlens: int[Bs + 1], first token of each of Bs sequences, then T.
        ssm_state: [slots, D, N], any strides; changed in place. Quickest when its memory is [slots, N, D].
        state_indices: int[Bs], slot of each sequence, no slot twice.
        has_initial_state: bool[Bs]; where False the state starts at zero and the slot's content is not read.
        metadata: What `make_metadata` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Returns:
        [T, D] in the dtype of `u`.

    Raises:
        ValueError: `backend` is unknown.
    """
    return _SCAN[backend](
        u,
        delta,
        A,
        B,
        C,
        D,
        z,
        delta_bias,
        delta_softplus,
        cu_seqlens,
        ssm_state,
        state_indices,
        has_initial_state,
        metadata,
    )


def selective_state_update(
    ssm_state: Tensor,
    u: Tensor,
    delta: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None,
    z: Tensor | None,
    delta_bias: Tensor | None,
    delta_softplus: bool,
    state_indices: Tensor,
    *,
    slots: Slots | None = None,
    backend: Backend = "torch",
) -> Tensor:
    """Take one step of each sequence.

    Args:
        ssm_state: [slots, D, N], any strides; changed in place. Quickest when its memory is [slots, N, D].
        u: [Bs, D], one token of each of Bs sequences.
        delta: [Bs, D].
        A: [D, N], in the compute dtype. Quickest when its memory is [N, D].
        B: [Bs, N].
        C: [Bs, N].
        D: [D] or None.
        z: [Bs, D] or None.
        delta_bias: [D] or None.
        delta_softplus: Whether time steps go through softplus.
        state_indices: int[Bs], slot of each row, no slot twice; a negative row reads and writes nothing, output 0.
        slots: What `make_slots(state_indices)` gave for this step, to share it between layers.
        backend: Which implementation runs.

    Returns:
        [Bs, D] in the dtype of `u`.

    Raises:
        ValueError: `backend` is unknown.
    """
    return _UPDATE[backend](ssm_state, u, delta, A, B, C, D, z, delta_bias, delta_softplus, state_indices, slots)
