"""SF506: a cache format whose pages the reference engine cannot lay out."""

from typing import Final

from staticfire.engine.config.alignment import DTYPE_BYTES
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule

EIGHT_BITS: Final = frozenset({"fp8", "fp8_e4m3", "fp8_e5m2"})


def check(draft: Draft) -> str | None:
    """Refuse formats other than plain floats and 8-bit floats."""
    if draft.kv_cache_dtype in DTYPE_BYTES or draft.kv_cache_dtype in EIGHT_BITS:
        return None
    return f"kv_cache_dtype={draft.kv_cache_dtype} is not supported by the reference engine"


RULE = Rule(
    code="SF506",
    name="kv-dtype-not-supported",
    summary="The key/value cache format is known, but not supported.",
    why=(
        "Packed formats of four bits or fewer, and those with scales beside each head, have pages of their own "
        "layout, so the block alignment of a hybrid model would be another."
    ),
    fix="Leave `kv_cache_dtype` at `auto`, or choose `fp8`.",
    since="0.1.0",
    says=(
        "kv_cache_dtype={} is not supported by the reference engine",
        "--kv-cache-dtype {} is not supported by the CPU attention backend on this host",
    ),
    fields=("cache.cache_dtype",),
    example=Example("llama", {"kv_cache_dtype": "nvfp4"}, fix={"kv_cache_dtype": None}),
    check=check,
    limit=True,
    breaks_runtime=True,
)
