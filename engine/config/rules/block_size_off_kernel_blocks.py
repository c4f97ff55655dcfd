"""SF104: an attention block is made of whole kernel blocks."""

from staticfire.engine.config.alignment import KERNEL_BLOCK_SIZE
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a block size that kernel blocks do not fill."""
    if draft.block_size % KERNEL_BLOCK_SIZE == 0:
        return None
    return f"block_size={draft.block_size} is no multiple of the kernel's block of {KERNEL_BLOCK_SIZE} tokens"


RULE = Rule(
    code="SF104",
    name="block-size-off-kernel-blocks",
    summary="`block_size` must be a multiple of the attention kernel's block, 16 tokens.",
    why=(
        "The attention kernel reads blocks of 16 tokens; a larger block of the cache is cut into those. A block that "
        "they do not fill cannot be addressed."
    ),
    fix="Choose a multiple of 16, or leave `block_size` out.",
    since="0.1.0",
    says=(
        "block_size={} is no multiple of the kernel's block",
        "this configuration. Reason: ['block_size not supported']",
        "Aligned KV cache block size {} is not supported by attention backend(s)",
    ),
    fields=("cache.block_size",),
    example=Example("llama", {"block_size": 24}, fix={"block_size": 32}),
    check=check,
    proposals=lambda draft: ({"block_size": KERNEL_BLOCK_SIZE * -(-draft.block_size // KERNEL_BLOCK_SIZE)},),
)
