"""SF104: an attention block is made of whole kernel blocks."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.alignment import KERNEL_BLOCK_SIZE
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def _kernel_block(draft: Draft) -> int:
    """Tokens of the smallest block that the attention kernel takes; 1 where a typed size is realigned anyway."""
    if draft.device.type != "cpu":
        return KERNEL_BLOCK_SIZE
    if draft.model.is_hybrid and draft.release.realigns_cpu_blocks:
        return 1
    return draft.kernel_blocks.smallest


def check(draft: Draft) -> str | None:
    """Refuse a block size that kernel blocks do not fill."""
    block, typed = _kernel_block(draft), draft.typed.block_size
    if typed is None or typed % block == 0:
        return None
    return f"block_size={typed} is no multiple of the kernel's block of {block} tokens"


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Raise it to the next multiple."""
    block = _kernel_block(draft)
    yield {"block_size": block * -(-draft.block_size // block)}


RULE = Rule(
    code="SF104",
    name="block-size-off-kernel-blocks",
    summary="`block_size` must be a multiple of the attention kernel's block, mostly 16 tokens.",
    why=(
        "The attention kernel reads blocks of 16 tokens (of 32 on a CPU under vLLM 0.33); a larger block of the cache "
        "is cut into those. A block that they do not fill cannot be addressed. For a hybrid model on a CPU vLLM takes "
        "any size as a step, and aligns it."
    ),
    fix="Choose a multiple of the kernel's block, or leave `block_size` out.",
    since="0.1.0",
    says=(
        "block_size={} is no multiple of the kernel's block",
        "this configuration. Reason: ['block_size not supported']",
        "Aligned KV cache block size {} is not supported by attention backend(s)",
    ),
    fields=("cache.block_size",),
    example=Example("llama", {"block_size": 24}, fix={"block_size": 32}),
    check=check,
    proposals=proposals,
)
