"""What is compiled of the cache writes: 8 heads, dense tokens of a cut through the projection."""

from staticfire.kernels.targets import Target
from staticfire.kernels.variant import Constant, Variant

_KERNEL = "staticfire.kernels.reshape_and_cache.triton:_reshape_and_cache"
_HEADS = 8
_ROUND = ("key_token", "key_head", "value_token", "value_head", "block_size", "size")
_CACHE = ("cache_block", "cache_plane", "cache_token", "cache_head")


def _variant(dtype: str, cache: str, size: int) -> Variant:
    signature = {**dict.fromkeys(("key", "value"), f"*{dtype}:16"), "cache": f"*{cache}:16"}
    signature |= {"slots": "*i64:16", "heads": "i32", **dict.fromkeys((*_ROUND, *_CACHE), "i32:16")}
    constants: dict[str, Constant] = {"key_column": 1, "value_column": 1, "cache_column": 1}
    constants |= {"HEADS": _HEADS, "SIZE": size}
    if cache == dtype:
        constants |= {"k_scale": None, "v_scale": None}
    else:
        signature |= {"k_scale": "fp32", "v_scale": "fp32"}
    name = f"{dtype}-{'' if cache == dtype else cache + '-'}d{size}"
    return Variant("reshape_and_cache", name, _KERNEL, signature, constants)


def variants(target: Target) -> list[Variant]:  # noqa: ARG001 - the launch is the same on every device
    """List them; see `staticfire.kernels.variant`."""
    kinds = (("bf16", "bf16", 64), ("bf16", "bf16", 128), ("bf16", "fp8e5", 128), ("fp32", "fp32", 128))
    return [_variant(*kind) for kind in kinds]
