"""The bytes behind the block pool, and the views that layers read and write."""

import math
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch

from staticfire.engine.cache.spec import AttentionSpec, CacheLayout, MambaSpec
from staticfire.engine.dtypes import torch_dtype
from staticfire.engine.errors import EngineError
from staticfire.engine.scheduler.output import StateCopy
from staticfire.kernels.dispatch import Backend
from staticfire.kernels.state_copy import state_copy

WORDS = (torch.int64, torch.int32, torch.int16, torch.uint8)
"""dtypes to move whole pages in, widest first."""


class CacheBuffers:
    """One byte pool for all groups, seen through one strided view per layer and tensor.

    The i-th layer of every group lives in buffer i, so that the page of a block holds keys and values or a state,
    whichever group has the block.

    Attributes:
        pool: uint8 [buffers, blocks, page bytes]; its pages are committed by the system as they are touched.
        attention: Layer -> [blocks, 2, block_size, kv heads, head_dim] in the cache dtype.
        states: Layer -> state tensors, each [blocks, *shape] in its own dtype (Mamba-1: convolution, scan).
        group_of: Layer -> cache group.
        attention_groups: Attention group -> its layers.
        recurrent_groups: Recurrent group -> its layers.
    """

    def __init__(self, layout: CacheLayout, backend: Backend = "torch") -> None:
        """Map the pool and make the views; `backend` copies states.

        Raises:
            EngineError: The machine has no room for the pool, or a dtype is not supported.
        """
        self.layout = layout
        self._backend = backend
        shape = (layout.num_tensors, layout.num_blocks, layout.page_size_bytes)
        try:
            self.pool = torch.from_numpy(np.zeros(shape, np.uint8))
        except MemoryError:
            raise EngineError(
                f"no memory for a cache of {math.prod(shape)} bytes ({layout.num_blocks} blocks); "
                "lower num_gpu_blocks_override or kv_cache_memory_bytes"
            ) from None
        self._words = self.pool.view(next(word for word in WORDS if layout.page_size_bytes % word.itemsize == 0))
        self.attention: dict[int, torch.Tensor] = {}
        self.states: dict[int, tuple[torch.Tensor, ...]] = {}
        self.group_of: dict[int, int] = {}
        self.attention_groups: dict[int, tuple[int, ...]] = {}
        self.recurrent_groups: dict[int, tuple[int, ...]] = {}
        for number, group in enumerate(layout.groups):
            kind = self.attention_groups if isinstance(group.spec, AttentionSpec) else self.recurrent_groups
            kind[number] = group.layers
            for buffer, layer in enumerate(group.layers):
                self.group_of[layer] = number
                if isinstance(group.spec, AttentionSpec):
                    self.attention[layer] = self._attention_view(buffer, group.spec)
                else:
                    self.states[layer] = self._state_views(buffer, group.spec)

    def _view(self, buffer: int, shape: Sequence[int], dtype: torch.dtype, offset: int = 0) -> torch.Tensor:
        """[blocks, *shape] of `dtype`, row-major, `offset` bytes into each page of a buffer."""
        size = dtype.itemsize
        assert offset % size == 0
        flat = self.pool[buffer].view(dtype)
        strides = [self.layout.page_size_bytes // size]
        strides += [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        start = flat.storage_offset() + offset // size
        return flat.as_strided((self.layout.num_blocks, *shape), strides, start)

    def _attention_view(self, buffer: int, spec: AttentionSpec) -> torch.Tensor:
        dtype = torch_dtype(spec.dtype, "kv_cache_dtype")
        return self._view(buffer, (2, spec.block_size, spec.num_kv_heads, spec.head_size), dtype)

    def _state_views(self, buffer: int, spec: MambaSpec) -> tuple[torch.Tensor, ...]:
        """One after the other, those of wider dtype first, so that each starts at a multiple of its own size.

        Each lies transposed, channels last: the kernels run over contiguous channels.
        """
        dtypes = [torch_dtype(name, "mamba_cache_dtype") for name in spec.dtypes]
        views: dict[int, torch.Tensor] = {}
        offset = 0
        for index in sorted(range(len(dtypes)), key=lambda i: -dtypes[i].itemsize):
            view = self._view(buffer, spec.shapes[index][::-1], dtypes[index], offset)
            views[index] = view.permute(0, *range(view.dim() - 1, 0, -1))
            offset += math.prod(spec.shapes[index]) * dtypes[index].itemsize
        assert offset <= spec.page_size_bytes
        return tuple(views[index] for index in range(len(dtypes)))

    def zero(self, blocks: Sequence[int]) -> None:
        """Zero the pages of `blocks` in every buffer; a block belongs to one group, so nothing else is lost."""
        self._words.index_fill_(1, torch.tensor(blocks), 0)

    def copy_states(self, copies: Sequence[StateCopy]) -> None:
        """Copy states from block to block in all layers of their group, with the outcome of doing so in order."""
        for group, batch in groupby(copies, key=lambda copy: copy.group):
            blocks = [(copy.src, copy.dst) for copy in batch]
            source, target = torch.tensor(blocks).unbind(1)
            for buffer in range(len(self.layout.groups[group].layers)):
                state_copy(self._words[buffer], source, target, backend=self._backend)
