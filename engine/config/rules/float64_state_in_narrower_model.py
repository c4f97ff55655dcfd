"""SF108: a state wider than any computation holds nothing more."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse float64 states under a narrower model dtype."""
    if draft.dtype == "float64":
        return None
    wide = [
        f"{name}=float64"
        for name in ("mamba_cache_dtype", "mamba_ssm_cache_dtype")
        if getattr(draft, name) == "float64"
    ]
    return f"{' and '.join(wide)} with dtype={draft.dtype}" if wide else None


RULE = Rule(
    code="SF108",
    name="float64-state-in-narrower-model",
    summary="States may be float64 only where the model computes in float64.",
    why=(
        "The kernels accumulate in float32 at most unless the model runs in float64 throughout; a wider state would "
        "store digits that nobody computed, and double the page."
    ),
    fix="Drop the state dtype, or set `dtype=float64`.",
    since="0.1.0",
    says=(
        "mamba_cache_dtype=float64 with dtype={}",
        "mamba_cache_dtype=float64 and mamba_ssm_cache_dtype=float64 with dtype={}",
        "mamba_ssm_cache_dtype=float64 with dtype={}",
    ),
    fields=(
        "cache.mamba_cache_dtype",
        "cache.mamba_ssm_cache_dtype",
        "model.dtype",
    ),
    example=Example("jamba", {"mamba_ssm_cache_dtype": "float64"}, fix={"mamba_ssm_cache_dtype": None}),
    check=check,
    proposals=lambda _: ({"dtype": "float64"},),
)
