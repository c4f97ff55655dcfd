"""SF605: in mode `align` the worker sets the state block to the attention block."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find a typed state block that mode `align` overwrites."""
    typed, aligned = draft.typed.mamba_block_size, draft.alignment.mamba_block_size
    if typed is not None and draft.mamba_cache_mode == "align" and aligned != typed:
        yield (
            "cache.mamba_block_size",
            typed,
            aligned,
            f"mamba_block_size={typed} becomes {aligned} in the worker: in mode align it is the attention block",
        )


RULE = RewriteRule(
    code="SF605",
    name="mamba-block-size-overwritten-by-align",
    summary="In mode `align` the worker overwrites `mamba_block_size` with the aligned `block_size`.",
    why="A state is kept at the boundaries of attention blocks, so that both end at the same token.",
    fix="Drop `mamba_block_size`; type `block_size` to have larger blocks.",
    since="0.1.0",
    fields=(
        "cache.mamba_block_size",
        "cache.mamba_cache_mode",
    ),
    example=Example("jamba", {"mamba_block_size": 64}),
    find=find,
)
