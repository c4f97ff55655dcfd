"""SF502: the reference engine keeps states at boundaries only."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse resolved mode `all`."""
    if draft.mamba_cache_mode != "all":
        return None
    return "mamba_cache_mode=all is not supported by the reference engine"


RULE = Rule(
    code="SF502",
    name="mode-all-not-supported",
    summary="Mamba cache mode `all` is not supported.",
    why=(
        "Mode `all` lets the scan kernel save a state at every block inside a step, at the price of far larger "
        "blocks. vLLM dropped it in 0.33; the reference engine has `none` and `align`."
    ),
    fix="Leave `mamba_cache_mode` out.",
    since="0.1.0",
    says=(
        "mamba_cache_mode=all is not supported",
        "does not support 'all' prefix caching, please use '--mamba-cache-mode=align'",
        "Mamba prefix caching requires mamba_cache_mode='align'",
    ),
    fields=("cache.mamba_cache_mode",),
    example=Example("jamba", {"mamba_cache_mode": "all"}, fix={"mamba_cache_mode": None}),
    check=check,
    limit=True,
)
