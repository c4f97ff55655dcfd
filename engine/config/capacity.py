"""How many blocks a pool has and how many requests fit. Pure arithmetic (vLLM V1, `kv_cache_utils`)."""

from dataclasses import dataclass

from staticfire.engine.config.engine_config import MambaCacheMode

GROW = 1.5
"""Where the larger bucket of layers is under this multiple of the smaller, one group holds the larger bucket."""


def group_size(attention_layers: int, recurrent_layers: int) -> int:
    """Layers that share one block table: the smaller bucket, or the larger where the two are close.

    The last group of a bucket is padded with empty layers.
    """
    buckets = [count for count in (attention_layers, recurrent_layers) if count]
    low, high = min(buckets), max(buckets)
    return high if high < GROW * low else low


@dataclass(frozen=True, slots=True)
class Demand:
    """What one request of `max_model_len` tokens takes from the pool.

    Attributes:
        group_size: Layers in one group.
        attention_groups: Groups of attention layers.
        recurrent_groups: Groups of recurrent layers.
        attention_blocks: Blocks of one attention group.
        recurrent_blocks: Blocks of one recurrent group.
        block_bytes: Bytes of one block of the pool (one page in each layer of a group).
    """

    group_size: int
    attention_groups: int
    recurrent_groups: int
    attention_blocks: int
    recurrent_blocks: int
    block_bytes: int

    @property
    def num_groups(self) -> int:
        """Groups that share the pool."""
        return self.attention_groups + self.recurrent_groups

    @property
    def blocks(self) -> int:
        """Blocks of one request of `max_model_len` tokens, all groups together."""
        return self.attention_groups * self.attention_blocks + self.recurrent_groups * self.recurrent_blocks


def demand(
    *,
    attention_layers: int,
    recurrent_layers: int,
    max_model_len: int,
    block_size: int,
    mamba_block_size: int | None,
    mode: MambaCacheMode,
    page_size_bytes: int,
    num_speculative_tokens: int = 0,
) -> Demand:
    """Count groups and blocks.

    A recurrent group holds one state a request in mode `none`, two in mode `align` (the running state and the one
    at the last boundary), one every `mamba_block_size` tokens in mode `all`; each plus the speculative slots.

    Returns:
        What one request of `max_model_len` tokens takes.
    """
    size = group_size(attention_layers, recurrent_layers)
    states = {"none": 1, "align": 2, "all": -(-max_model_len // (mamba_block_size or max_model_len))}[mode]
    return Demand(
        group_size=size,
        attention_groups=-(-attention_layers // size),
        recurrent_groups=-(-recurrent_layers // size),
        attention_blocks=-(-max_model_len // block_size),
        recurrent_blocks=states + num_speculative_tokens,
        block_bytes=size * page_size_bytes,
    )
