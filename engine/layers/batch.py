"""One step's tokens and where their caches lie, as tensors; built once a step and read by every layer."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from staticfire.kernels.causal_conv1d import ConvMetadata
from staticfire.kernels.dispatch import Backend
from staticfire.kernels.paged_attention import AttentionMetadata
from staticfire.kernels.reshape_and_cache import CacheWrites
from staticfire.kernels.rotary import RotaryMetadata
from staticfire.kernels.selective_scan import ScanMetadata
from staticfire.kernels.slots import Slots

RoutingHook = Callable[[int, torch.Tensor, torch.Tensor, torch.Tensor], None]
"""(layer, topk_ids[T, k], topk_weights[T, k], router_logits[T, E])."""


@dataclass(slots=True)
class AttentionBatch:
    """What the layers of one attention group need.

    Attributes:
        block_tables: [sequences, most blocks] block ids, 0 past a sequence's end.
        slot_mapping: [tokens] block id * block size + offset, where each token's key and value go.
        writes: `slot_mapping` as the cache-writing kernel wants it.
        reads: Rows and masks of the attention kernel.
    """

    block_tables: torch.Tensor
    slot_mapping: torch.Tensor
    writes: CacheWrites
    reads: AttentionMetadata


@dataclass(slots=True)
class RecurrentBatch:
    """What the layers of one recurrent group need.

    Attributes:
        state_indices: [sequences] block whose state is read and written.
        has_initial_state: [sequences] whether the state holds earlier tokens; False starts from zero.
        slots: `state_indices` for the one-token kernels.
        conv: Index lists of the convolution of backend `torch`; None elsewhere, and in a step of one token each.
        scan: The same of its scan.
    """

    state_indices: torch.Tensor
    has_initial_state: torch.Tensor
    slots: Slots
    conv: ConvMetadata | None = None
    scan: ScanMetadata | None = None


@dataclass(slots=True)
class ForwardBatch:
    """One step.

    Attributes:
        token_ids: [tokens] of all sequences, one after the other.
        positions: [tokens] position of each in its sequence.
        one_token_each: Every sequence has exactly one token and a state to continue from.
        cu_seqlens: [sequences + 1] where each sequence starts in `token_ids`.
        seq_lens: [sequences] tokens of each sequence up to the end of this step.
        groups: One entry per cache group, in the order of the cache layout.
        backend: What computes the ops.
        continued: The sequences are those of the last step, each one token further.
        rotary: Angles of the tokens, where the model has rotary positions.
        routing: Told of every routing decision, where somebody watches.
    """

    token_ids: torch.Tensor
    positions: torch.Tensor
    one_token_each: bool
    cu_seqlens: torch.Tensor
    seq_lens: torch.Tensor
    groups: tuple[AttentionBatch | RecurrentBatch, ...]
    backend: Backend = "torch"
    continued: bool = False
    rotary: RotaryMetadata | None = None
    routing: RoutingHook | None = None
