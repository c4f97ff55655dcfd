"""SF601: a typed cache mode becomes `none` where prefix caching is off."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find a typed mode that caching off undoes."""
    typed = draft.typed.mamba_cache_mode
    if typed in {"align", "all"} and not draft.enable_prefix_caching and draft.model.recurrent_layers:
        yield (
            "cache.mamba_cache_mode",
            typed,
            draft.mamba_cache_mode,
            f"mamba_cache_mode={typed} becomes none, because prefix caching is off",
        )


RULE = RewriteRule(
    code="SF601",
    name="mode-without-prefix-caching",
    summary="A typed `mamba_cache_mode` becomes `none` where prefix caching is off.",
    why="Modes say which states are kept for reuse; without prefix caching none is.",
    fix="Turn prefix caching on, or drop the mode.",
    since="0.1.0",
    fields=(
        "cache.mamba_cache_mode",
        "cache.enable_prefix_caching",
    ),
    example=Example("jamba", {"mamba_cache_mode": "align", "enable_prefix_caching": False}),
    find=find,
)
