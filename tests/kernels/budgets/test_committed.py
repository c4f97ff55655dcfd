"""The committed budgets are of every kernel there is, and say what is promised of them. Nothing is compiled."""

import pytest

from staticfire.kernels.budgets.compile import triton_version
from staticfire.kernels.budgets.file import Key, dump, load, path_for
from staticfire.kernels.registry import OPS
from staticfire.kernels.targets import TARGETS

pytestmark = pytest.mark.engine

PRODUCTS = ("paged_attention", "fused_moe", "int8_linear")
WITHOUT_PRODUCTS = ("sort", "mean", "merge")
"""Kernels of those ops that only order, add or scale."""


@pytest.fixture(scope="module")
def budgets():
    return load(path_for(triton_version()))


def test_every_kernel_has_a_budget_and_every_budget_a_kernel(budgets):
    kernels = {
        Key(op.name, variant.name, target.name)
        for op in OPS.values()
        for target in TARGETS.values()
        for variant in op.variants(target)
    }
    assert set(budgets.kernels) == kernels
    assert set(budgets.allowances) <= kernels


def test_nothing_spills_in_bf16_on_hopper_and_blackwell(budgets):
    spilling = [
        str(key)
        for key, taken in budgets.kernels.items()
        if key.target in {"sm_90", "sm_100"} and key.variant.startswith("bf16") and (taken.stack_bytes or taken.spills)
    ]
    assert spilling == []


@pytest.mark.parametrize(
    ("op", "sizes"),
    [
        ("paged_attention", ("-d64", "-d80", "-d96", "-d128", "-d256")),
        ("selective_scan_varlen", ("-n16", "-n64", "-n128", "-n256")),
        ("selective_state_update", ("-n16", "-n64", "-n128", "-n256")),
    ],
)
def test_the_sizes_that_are_promised_are_among_them(budgets, op, sizes):
    names = {key.variant for key in budgets.kernels if key.op == op}
    for size in sizes:
        assert any(name.startswith("bf16") and f"{name}-".find(f"{size}-") > 0 for name in names), size


def test_shared_memory_is_there_on_every_target(budgets):
    assert all(taken.shared_bytes <= TARGETS[key.target].shared_limit for key, taken in budgets.kernels.items())


def test_products_in_half_types_run_on_tensor_cores(budgets):
    without = [
        str(key)
        for key, taken in budgets.kernels.items()
        if key.op in PRODUCTS
        and key.variant.startswith(("bf16", "fp16", "int8"))
        and not key.variant.endswith(WITHOUT_PRODUCTS)
        and taken.tensor_core is None
    ]
    assert without == []


@pytest.mark.parametrize(("target", "instruction"), [("sm_90", "wgmma.mma_async"), ("sm_100", "tcgen05.mma")])
def test_prompts_have_the_products_that_take_64_rows_or_more(budgets, target, instruction):
    taken = {
        key.variant: budget.tensor_core
        for key, budget in budgets.kernels.items()
        if (key.op, key.target) == ("paged_attention", target) and key.variant.endswith("prefill")
    }
    half = {name: product for name, product in taken.items() if name.startswith("bf16")}
    assert half == dict.fromkeys((f"bf16-d{size}-prefill" for size in (64, 80, 96, 128, 256)), instruction)


def test_the_file_is_as_it_is_written(budgets):
    assert dump(budgets) == path_for(triton_version()).read_text(encoding="utf-8")
