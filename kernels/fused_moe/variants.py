"""What is compiled of the experts: projections of few and of many tokens, with plain and with int8 weights."""

from staticfire.kernels.targets import Target
from staticfire.kernels.tiles import product_tiles
from staticfire.kernels.variant import FP32, ITEM, Constant, Variant, integers, pointers

_MODULE = "staticfire.kernels.fused_moe.triton"


def _product(target: Target, kernel: str, dtype: str, weights: str, kind: str) -> Variant:
    rows, gated = {"prefill": 256, "decode": 4}[kind], kernel == "gate-up"
    tiles = product_tiles(rows, ITEM[dtype], pair=gated, amd=target.amd, interpreted=False)
    signature = {
        **pointers(dtype, "act"),
        **pointers(weights, "w"),
        **pointers("i32", "starts", "order"),
        **integers("w_expert", "w_row", "hidden", "inner"),
        "experts": "i32",
    }
    constexprs: dict[str, Constant] = {
        "w_channel": 1,
        "WIDE": FP32,
        "ROWS": tiles.rows,
        "COLUMNS": tiles.columns,
        "INNER": tiles.inner,
        "UPCAST": False,
    }
    if gated:
        signature |= {**pointers(dtype, "x"), **integers("x_token")}
        constexprs |= {"x_channel": 1, "TOP_K": 2}
    else:
        signature |= pointers("fp32", "down")
    if weights == "i8":
        signature |= pointers("fp32", "scale")
    else:
        constexprs["scale"] = None
    function = f"{_MODULE}:{'_gate_up' if gated else '_down'}"
    name = f"{dtype}{'-int8' if weights == 'i8' else ''}-{kernel}-{kind}"
    return Variant("fused_moe", name, function, signature, constexprs, tiles.num_warps, tiles.num_stages)


def variants(target: Target) -> list[Variant]:
    """List them; see `staticfire.kernels.variant`."""
    products = [
        _product(target, kernel, "bf16", weights, kind)
        for kernel, weights, kind in (
            ("gate-up", "bf16", "prefill"),
            ("gate-up", "bf16", "decode"),
            ("gate-up", "i8", "prefill"),
            ("down", "bf16", "prefill"),
            ("down", "i8", "prefill"),
            ("down", "i8", "decode"),
        )
    ]
    sort = Variant(
        "fused_moe",
        "sort",
        f"{_MODULE}:_sort",
        {**pointers("i64", "ids"), **pointers("i32", "order", "starts"), "pairs": "i32", "experts": "i32"},
        {"BLOCK": 1024},
    )
    mean = Variant(
        "fused_moe",
        "bf16-mean",
        f"{_MODULE}:_mean",
        {**pointers("fp32", "down", "weights"), **pointers("bf16", "out"), **integers("hidden")},
        {"TOP_K": 2, "WIDE": FP32, "BLOCK": 1024},
    )
    return [*products, sort, mean]
