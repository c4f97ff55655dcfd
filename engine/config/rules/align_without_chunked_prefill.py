"""SF101: mode `align` cuts prompts at block boundaries, so it needs chunked prefill."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse resolved `align` without resolved chunked prefill."""
    if draft.mamba_cache_mode != "align" or draft.enable_chunked_prefill:
        return None
    return "mamba_cache_mode=align needs chunked prefill, but enable_chunked_prefill=False"


RULE = Rule(
    code="SF101",
    name="align-without-chunked-prefill",
    summary="Mamba cache mode `align` needs chunked prefill.",
    why=(
        "In mode `align` a state is cached only where a step ends on a block boundary, so the scheduler cuts every "
        "prefill there; without chunked prefill it may not cut. Hybrid models resolve to `align` by themselves as "
        "soon as prefix caching is on, which is the default: turning chunked prefill off is enough to break this."
    ),
    fix="Leave chunked prefill on, or turn prefix caching off (the mode is then `none`).",
    since="0.1.0",
    says=(
        "mamba_cache_mode=align needs chunked prefill",
        "Chunked prefill is required for mamba cache mode 'align'",
        "Chunked prefill is required for Mamba prefix caching",
    ),
    fields=(
        "cache.mamba_cache_mode",
        "scheduler.enable_chunked_prefill",
    ),
    example=Example("jamba", {"enable_chunked_prefill": False}, fix={"enable_chunked_prefill": None}),
    check=check,
)
