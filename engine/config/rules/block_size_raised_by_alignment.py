"""SF604: the worker raises a block size until a block holds a state."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find a typed block size that the worker raises."""
    typed, aligned = draft.typed.block_size, draft.alignment.block_size
    if typed is not None and aligned != typed:
        state = draft.alignment.state_bytes
        message = (
            f"block_size={typed} becomes {aligned} in the worker: a block must hold a recurrent state of {state} B"
        )
        yield "cache.block_size", typed, aligned, message


RULE = RewriteRule(
    code="SF604",
    name="block-size-raised-by-alignment",
    summary="The worker raises `block_size` until a block of keys and values holds a recurrent state.",
    why=(
        "Both kinds of cache share one pool of equal pages. A typed block size is a step there, not an answer: the "
        "worker takes its next multiple that is large enough."
    ),
    fix="Type the aligned size, or none.",
    since="0.1.0",
    fields=("cache.block_size",),
    example=Example("jamba-grow", {"block_size": 32}),
    find=find,
)
