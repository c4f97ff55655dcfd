"""SF102: without prefix caching a request keeps one state, so there is no block size to choose."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a typed `mamba_block_size` without caching, unless it is what caching off means anyway."""
    typed = draft.typed.mamba_block_size
    if typed is None or draft.enable_prefix_caching or typed == draft.max_model_len:
        return None
    return f"mamba_block_size={typed} needs prefix caching, but enable_prefix_caching=False"


RULE = Rule(
    code="SF102",
    name="mamba-block-size-without-prefix-caching",
    summary="`mamba_block_size` may be chosen only with prefix caching.",
    why=(
        "Without prefix caching one state serves a request of any length: its block is as long as the longest "
        "request. A smaller one would promise cached states that nobody keeps."
    ),
    fix="Drop `mamba_block_size`, or turn prefix caching on.",
    since="0.1.0",
    says=(
        "mamba_block_size={} needs prefix caching",
        "--mamba-block-size can only be set with --enable-prefix-caching",
    ),
    fields=(
        "cache.mamba_block_size",
        "cache.enable_prefix_caching",
    ),
    example=Example("jamba", {"mamba_block_size": 64, "enable_prefix_caching": False}, fix={"mamba_block_size": None}),
    check=check,
)
