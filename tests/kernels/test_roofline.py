"""The least time of an op, from values alone."""

import inspect

import pytest

from staticfire.kernels.registry import OPS
from staticfire.kernels.roofline import CEILINGS, Ceilings, find_ceilings, floor, parse_shape
from staticfire.kernels.variant import Cost

DEVICE = Ceilings("toy", None, "Toy", 1e12, {"bf16": 1e14, "fp32": 1e13})


def test_the_larger_of_two_times_is_the_floor():
    moved = floor(Cost(read=10**6, written=10**6, operations=10**6), DEVICE)
    assert (moved.memory, moved.compute, moved.bound) == (2e-6, 1e-7, "memory")
    assert moved.seconds == 2e-6
    multiplied = floor(Cost(read=1, written=1, operations=10**12, unit="bf16"), DEVICE)
    assert (multiplied.seconds, multiplied.bound) == (1e-2, "compute")


def test_a_unit_that_the_device_lacks_is_named():
    with pytest.raises(ValueError, match="toy has no fp8 products; it has bf16, fp32"):
        floor(Cost(1, 1, 1, "fp8"), DEVICE)


def test_an_unknown_device_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'h200-141gb'"):
        find_ceilings("h200")


def test_half_types_are_never_slower_than_single():
    for one in CEILINGS.values():
        assert one.peaks["bf16"] == one.peaks["fp16"] > one.peaks["fp32"] > one.peaks["fp64"]


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [(int, "16", 16), (bool, "true", True), (bool, "false", False), (str, "bf16", "bf16")],
)
def test_shapes_are_read_by_type(annotation, text, value):
    parameter = inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    assert parse_shape("x", text, parameter) == value


@pytest.mark.parametrize(("annotation", "text"), [(int, "-1"), (int, "1.5"), (int, "²"), (int, "0"), (bool, "1")])
def test_what_is_no_shape_is_refused(annotation, text):
    parameter = inspect.Parameter("x", inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
    with pytest.raises(ValueError, match="x must be"):
        parse_shape("x", text, parameter)


@pytest.mark.parametrize(
    ("op", "shape", "message"),
    [
        ("topk_softmax", {"tokens": 2, "experts": 4, "top_k": 5}, "top_k is at most experts, which is 4; got 5"),
        ("fused_moe", {"tokens": 2, "hidden": 8, "inner": 8, "experts": 1}, "top_k is at most experts"),
        ("causal_conv1d_varlen", {"tokens": 2, "channels": 8, "sequences": 3}, "sequences is at most tokens"),
        ("selective_scan_varlen", {"tokens": 2, "channels": 8, "sequences": 3}, "sequences is at most tokens"),
        (
            "paged_attention",
            {"sequences": 1, "queries": 9, "positions": 3, "heads": 4, "key_heads": 2},
            "queries is at most positions, which is 3; got 9",
        ),
        (
            "paged_attention",
            {"sequences": 1, "queries": 1, "positions": 3, "heads": 4, "key_heads": 3},
            "heads is a multiple of key_heads, which is 3; got 4",
        ),
    ],
)
def test_shapes_that_cannot_be_cost_nothing_and_are_refused(op, shape, message):
    with pytest.raises(ValueError, match=f"{op}: {message}"):
        OPS[op].cost(**shape)
