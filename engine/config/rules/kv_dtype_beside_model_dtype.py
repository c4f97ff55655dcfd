"""SF107: unquantized keys and values have the model's dtype."""

from staticfire.engine.config.alignment import DTYPE_BYTES
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse an unquantized cache dtype other than the model's."""
    if draft.kv_cache_dtype not in DTYPE_BYTES or draft.kv_cache_dtype == draft.dtype:
        return None
    return f"kv_cache_dtype={draft.kv_cache_dtype} is not the model's dtype={draft.dtype}"


RULE = Rule(
    code="SF107",
    name="kv-dtype-beside-model-dtype",
    summary="An unquantized `kv_cache_dtype` must be the model's dtype.",
    why=(
        "The attention kernel reads keys and values in the dtype of the query, or in an 8-bit format that it widens "
        "itself. It does not convert between 16-bit and wider formats."
    ),
    fix="Leave `kv_cache_dtype` at `auto`, or set `dtype` to the same.",
    since="0.1.0",
    says=("kv_cache_dtype={} is not the model's dtype={}", 'kv_cache_dtype="{}" is incompatible with dtype="{}"'),
    fields=(
        "cache.cache_dtype",
        "model.dtype",
    ),
    example=Example("llama", {"dtype": "float16", "kv_cache_dtype": "bfloat16"}, fix={"kv_cache_dtype": None}),
    check=check,
    holds=lambda release: release.plain_kv_dtype_is_the_models,
    proposals=lambda draft: ({"dtype": draft.kv_cache_dtype},),
)
