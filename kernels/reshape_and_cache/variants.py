"""What is compiled of the cache writes: 8 heads, dense tokens of a cut through the projection."""

from staticfire.kernels.targets import Target
from staticfire.kernels.variant import Constant, Variant

_KERNEL = "staticfire.kernels.reshape_and_cache.triton:_reshape_and_cache"
_HEADS = 8
_ROUND = ("key_token", "key_head", "value_token", "value_head", "block_size", "size")
_CACHE = ("cache_block", "cache_plane", "cache_token", "cache_head")


def _variant(dtype: str, size: int) -> Variant:
    signature = dict.fromkeys(("key", "value", "cache"), f"*{dtype}:16")
    signature |= {"slots": "*i64:16", "heads": "i32", **dict.fromkeys((*_ROUND, *_CACHE), "i32:16")}
    constants: dict[str, Constant] = {"key_column": 1, "value_column": 1, "cache_column": 1}
    constants |= {"HEADS": _HEADS, "SIZE": size}
    return Variant("reshape_and_cache", f"{dtype}-d{size}", _KERNEL, signature, constants)


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    return [_variant("bf16", 64), _variant("bf16", 128), _variant("fp32", 128)]
