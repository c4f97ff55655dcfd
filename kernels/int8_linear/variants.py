"""What is compiled of the int8 linear layer: few and many tokens, with and without a bias."""

from staticfire.kernels.targets import Target
from staticfire.kernels.tiles import product_tiles
from staticfire.kernels.variant import FP32, ITEM, Constant, Variant, integers, pointers


def _variant(target: Target, dtype: str, rows: int, kind: str, *, bias: bool) -> Variant:
    tiles = product_tiles(rows, ITEM[dtype], pair=False, amd=target.amd, interpreted=False)
    signature = {
        **pointers(dtype, "x", "out"),
        **pointers("i8", "w"),
        **pointers("fp32", "scale"),
        **integers("x_token", "w_row", "inputs", "outputs"),
        "tokens": "i32",
    }
    constexprs: dict[str, Constant] = {
        "x_channel": 1,
        "w_channel": 1,
        "WIDE": FP32,
        "ROWS": tiles.rows,
        "COLUMNS": tiles.columns,
        "INNER": tiles.inner,
        "UPCAST": False,
    }
    if bias:
        signature |= pointers(dtype, "bias")
    else:
        constexprs["bias"] = None
    kernel = "staticfire.kernels.int8_linear.triton:_int8_linear"
    name = f"{dtype}-{kind}{'-bias' if bias else ''}"
    return Variant("int8_linear", name, kernel, signature, constexprs, tiles.num_warps, tiles.num_stages)


def variants(target: Target) -> list[Variant]:
    """List them; see `staticfire.kernels.variant`."""
    return [
        _variant(target, "bf16", 4096, "prefill", bias=False),
        _variant(target, "bf16", 48, "mixed", bias=True),
        _variant(target, "bf16", 8, "decode", bias=False),
        _variant(target, "fp16", 8, "decode", bias=True),
        _variant(target, "fp32", 48, "mixed", bias=False),
    ]
