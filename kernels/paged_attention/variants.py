"""What is compiled of paged attention: 8 query heads a key head, prompts and decodes, with pages of odd sizes."""

import math

from staticfire.kernels.paged_attention.tiles import Launch, choose
from staticfire.kernels.targets import Target
from staticfire.kernels.variant import FP32, ITEM, Constant, Variant, integers, pointers

_MODULE = "staticfire.kernels.paged_attention.triton"
_GROUP, _KEY_HEADS, _BLOCK_SIZE, _UNITS = 8, 8, 528, 132
_SHAPES = {"prefill": (4096, 4), "decode": (64, 64), "decode-split": (4, 4)}
"""Kind -> queries and sequences."""


def _attention(target: Target, dtype: str, cache: str, size: int, kind: str) -> Variant:
    tokens, sequences = _SHAPES[kind]
    launch = Launch(tokens, sequences, _KEY_HEADS, _GROUP, size, ITEM[dtype], 8192, _UNITS, target.amd)
    tiles = choose(launch)
    signature = {
        **pointers(dtype, "q"),
        **pointers(cache, "cache"),
        **pointers("i32", "tables", "cu_seqlens", "seq_lens"),
        **pointers("fp32" if tiles.splits > 1 else dtype, "out"),
        **integers("q_token", "q_head", "cache_block", "cache_plane", "cache_token", "cache_head"),
        **dict.fromkeys(("table_row", "tokens", "heads", "sequences"), "i32"),
    }
    constexprs: dict[str, Constant] = {
        "q_column": 1,
        "table_column": 1,
        "FACTOR": size**-0.5 * math.log2(math.e),
        "WIDE": FP32,
        "BLOCK_SIZE": _BLOCK_SIZE,
        "GROUP": _GROUP,
        "SIZE": size,
        "D": 1 << (size - 1).bit_length(),
        "ROWS": tiles.rows,
        "TOKENS": tiles.rows // _GROUP,
        "POSITIONS": tiles.positions,
        "SPLITS": tiles.splits,
        "UPCAST": False,
    }
    if tiles.splits > 1:
        signature |= pointers("fp32", "logs")
    else:
        constexprs["logs"] = None
    if cache == dtype:
        constexprs |= {"k_scale": None, "v_scale": None}
    else:
        signature |= {"k_scale": "fp32", "v_scale": "fp32"}
    name = f"{dtype}-{'' if cache == dtype else cache + '-'}d{size}-{kind}"
    kernel = f"{_MODULE}:_paged_attention"
    return Variant("paged_attention", name, kernel, signature, constexprs, tiles.num_warps, tiles.num_stages)


def _merge(dtype: str, size: int) -> Variant:
    signature = {**pointers("fp32", "parts", "logs"), **pointers(dtype, "out"), "lines": "i32"}
    constexprs: dict[str, Constant] = {"SIZE": size, "D": size, "SPLITS": 8, "S": 8}
    return Variant("paged_attention", f"{dtype}-d{size}-merge", f"{_MODULE}:_merge", signature, constexprs)


def variants(target: Target) -> list[Variant]:
    """List them; see `staticfire.kernels.variant`. e4m3fn is left out: the oldest target cannot convert it."""
    kinds = [("bf16", "bf16", 64, kind) for kind in ("prefill", "decode")]
    kinds += [("bf16", "bf16", 128, kind) for kind in ("prefill", "decode", "decode-split")]
    kinds += [("bf16", "bf16", 256, kind) for kind in ("prefill", "decode")]
    kinds += [("bf16", "bf16", size, "prefill") for size in (80, 96)]
    kinds += [("bf16", "fp8e5", 128, "decode"), ("fp32", "fp32", 64, "prefill")]
    return [*(_attention(target, *kind) for kind in kinds), _merge("bf16", 128), _merge("bf16", 256)]
