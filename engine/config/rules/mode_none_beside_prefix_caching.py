"""SF602: typed `none` becomes `align` where prefix caching is on."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find a typed `none` that caching overrides."""
    if draft.typed.mamba_cache_mode == "none" and draft.mamba_cache_mode != "none":
        yield (
            "cache.mamba_cache_mode",
            "none",
            draft.mamba_cache_mode,
            f"mamba_cache_mode=none becomes {draft.mamba_cache_mode}, because prefix caching is on",
        )


RULE = RewriteRule(
    code="SF602",
    name="mode-none-beside-prefix-caching",
    summary="Typed `mamba_cache_mode=none` becomes `align` where prefix caching is on.",
    why=(
        "`none` is also the value of the untouched field, so it cannot ask for anything; and without cached states no "
        "prefix of a model with recurrent layers could be reused."
    ),
    fix="To have mode `none`, turn prefix caching off.",
    since="0.1.0",
    fields=(
        "cache.mamba_cache_mode",
        "cache.enable_prefix_caching",
    ),
    example=Example("jamba", {"mamba_cache_mode": "none"}),
    find=find,
)
