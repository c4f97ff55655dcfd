"""The worker's block-size alignment: the attention page must hold a recurrent state.

All groups of a hybrid model share one pool, so one block of attention (keys and values of `block_size` tokens in one
layer) and one recurrent state of one layer must have the same page size. The state is large; the worker therefore
raises the block size until the attention page covers it, in steps the attention kernel allows, then pads the state:

    k          = max(kernel block size, block_size)
    n          = k * ceil(M / (k * a))              a: attention bytes a token, M: state bytes
    n          = B * ceil(n / B)                    B: kernel block size (where the release rounds to it)
    block_size = max(block_size, n)                 never shrinks
    page       = block_size * a >= M

In mode `align` k is first made a multiple of the tokens after which the kernel of the recurrent layers can export a
state, where it asks for one (`kernel_blocks`). Mode `all` instead grows in chunks of the scan kernel:
chunk = lcm(chunk size, k), n = chunk * ceil(ceil(M/a)/chunk).
Pure functions of integers; nothing here imports torch.
"""

from dataclasses import dataclass
from math import lcm, prod
from typing import Final

from staticfire.engine.config.engine_config import MambaCacheMode
from staticfire.engine.config.model import StateShape

KERNEL_BLOCK_SIZE: Final = 16
"""Tokens in the smallest block of the reference engine's attention kernel."""

DTYPE_BYTES: Final = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2}
DEFAULT_CHUNK: Final = 2048


def kv_dtype_bytes(cache_dtype: str) -> int:
    """Bytes of one element of keys or values; 8-bit formats count one byte."""
    return DTYPE_BYTES.get(cache_dtype, 1)


def attention_bytes_per_token(num_kv_heads: int, head_dim: int, tensor_parallel_size: int, dtype_bytes: int) -> int:
    """Bytes of keys and values of one token in one layer of one rank.

    Heads are replicated where ranks outnumber them, so at least one stays on each rank.
    """
    return 2 * max(1, num_kv_heads // tensor_parallel_size) * head_dim * dtype_bytes


def state_bytes(shapes: tuple[StateShape, ...], conv_dtype: str, ssm_dtype: str) -> int:
    """Unpadded bytes of the recurrent state of one layer of one rank."""
    sizes = {"conv": DTYPE_BYTES[conv_dtype], "ssm": DTYPE_BYTES[ssm_dtype]}
    return sum(prod(s.shape) * sizes[s.role] for s in shapes)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The result, with the numbers that led there.

    Attributes:
        step: Tokens by which the block size may grow (k; the chunk in mode `all`).
        attention_bytes: Attention bytes of one token in one layer of one rank.
        state_bytes: Unpadded state of one layer of one rank; 0 without recurrent layers.
        block_size: Tokens in one attention block.
        mamba_block_size: Tokens between two cached states; None without recurrent layers.
        page_size_bytes: Bytes of one block of one layer, equal for all groups.
        padded: The padded state page, None where the state fills the page exactly.
    """

    step: int
    attention_bytes: int
    state_bytes: int
    block_size: int
    mamba_block_size: int | None
    page_size_bytes: int
    padded: int | None


def align(
    *,
    attention_bytes: int,
    state_bytes: int,
    block_size: int,
    mode: MambaCacheMode,
    mamba_block_size: int | None,
    kernel_block_size: int = KERNEL_BLOCK_SIZE,
    export_step: int = 1,
    rounds_to_kernel_blocks: bool = True,
    chunk_size: int | None = None,
) -> Alignment:
    """Align attention blocks and recurrent states of one rank.

    Args:
        attention_bytes: Attention bytes of one token in one layer; 0 for a model without attention.
        state_bytes: Unpadded state of one layer in bytes; 0 for a model without recurrent layers.
        block_size: Tokens in one block before alignment.
        mode: Resolved cache mode.
        mamba_block_size: As the front end resolved it.
        kernel_block_size: Smallest block of the attention kernel, in tokens.
        export_step: Tokens to whose multiples the recurrent layers' kernel binds a block in mode `align`.
        rounds_to_kernel_blocks: Whether the result is made a multiple of `kernel_block_size`.
        chunk_size: Tokens of one chunk of the scan kernel, for mode `all`; in that mode a typed
            `mamba_block_size` is passed here instead.

    Returns:
        Block sizes and page size of the worker.
    """
    step = max(kernel_block_size, block_size)
    if not state_bytes or not attention_bytes:
        page = block_size * attention_bytes or state_bytes
        recurrent = (block_size if mode == "align" else mamba_block_size) if state_bytes else None
        return Alignment(step, attention_bytes, state_bytes, block_size, recurrent, page, None)
    if mode == "all":
        step = lcm(chunk_size or DEFAULT_CHUNK, step)
        covering = -(-state_bytes // attention_bytes)
        tokens = step * -(-covering // step)
        mamba_block_size = tokens
    else:
        step = lcm(step, export_step) if mode == "align" else step
        tokens = step * -(-state_bytes // (step * attention_bytes))
        if rounds_to_kernel_blocks:
            tokens = kernel_block_size * -(-tokens // kernel_block_size)
    block_size = max(block_size, tokens)
    if mode == "align":
        mamba_block_size = block_size
    page = block_size * attention_bytes
    return Alignment(
        step,
        attention_bytes,
        state_bytes,
        block_size,
        mamba_block_size,
        page,
        page if page != state_bytes else None,
    )
