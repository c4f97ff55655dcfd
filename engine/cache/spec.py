"""What each cache group keeps in a block, and how groups share one pool. Imports no torch.

One pool of `num_blocks` blocks serves every group. A block id belongs to one group at a time; within that group
it names one page in each of the group's layers. Physically there are `CacheLayout.num_tensors` buffers of
`num_blocks * page_size_bytes` bytes; the i-th layer of every group lives in buffer i, so one page may hold keys
and values now and a recurrent state later (vLLM V1, `kv_cache_utils`).
"""

from dataclasses import dataclass
from typing import Literal

NULL_BLOCK = 0
"""Block id that stands for "nothing here"; never allocated, never written."""


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Keys and values of `block_size` tokens in one layer: dtype[2, block_size, num_kv_heads, head_size]."""

    block_size: int
    num_kv_heads: int
    head_size: int
    dtype: str
    page_size_bytes: int


@dataclass(frozen=True, slots=True)
class MambaSpec:
    """One recurrent state of one layer: `shapes[i]` in `dtypes[i]`, laid one after the other in the page.

    Attributes:
        block_size: Tokens between two cacheable states (`max_model_len` in mode `none`).
        shapes: Shape of each state tensor; for Mamba-1 conv (intermediate, d_conv - 1), then ssm
            (intermediate, d_state).
        dtypes: dtype name of each.
        mode: `none` keeps one state a request; `align` keeps the state at cached block boundaries.
        page_size_bytes: Padded page, equal to the attention page of the same pool.
    """

    block_size: int
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    mode: Literal["none", "align"]
    page_size_bytes: int


@dataclass(frozen=True, slots=True)
class CacheGroup:
    """Layers that share one block table."""

    layers: tuple[int, ...]
    spec: AttentionSpec | MambaSpec


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """The whole cache: groups in block-table order, attention groups first."""

    groups: tuple[CacheGroup, ...]
    num_blocks: int
    num_tensors: int
    page_size_bytes: int
