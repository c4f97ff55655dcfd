"""Each kind of finding, from values alone."""

from dataclasses import replace

import pytest

from staticfire.kernels.budgets.compile import Compiled
from staticfire.kernels.budgets.file import Allowance, Budgets, Key
from staticfire.kernels.budgets.judge import KINDS, judge, refused, stale, updated
from staticfire.kernels.budgets.resources import Resources
from staticfire.kernels.targets import TARGETS
from staticfire.kernels.variant import Variant

TAKEN = Resources(
    registers=96,
    spills=0,
    scalar_spills=0,
    stack_bytes=0,
    shared_bytes=49152,
    code_bytes=4096,
    tensor_core="wgmma.mma_async",
    wide_loads=8,
    unmasked=1,
    bounds=4,
)
KEY = Key("attend", "bf16-d128", "sm_90")
VARIANT = Variant("attend", "bf16-d128", "staticfire.kernels.attend.triton:_attend", {})


def made(resources=TAKEN, error=None, target="sm_90"):
    return Compiled(VARIANT, TARGETS[target], resources, error, fresh=True)


def kinds(resources, budget=TAKEN, allowance=None):
    budgets = Budgets("3.9", {KEY: budget}, {KEY: allowance} if allowance else {})
    return [finding.kind for finding in judge(made(resources), budgets)]


def test_a_kernel_within_its_budget_has_no_finding():
    assert kinds(TAKEN) == []


@pytest.mark.parametrize(
    "better",
    [
        {"registers": 40},
        {"shared_bytes": 0},
        {"wide_loads": 1},
        {"bounds": 9},
        {"unmasked": 0},
        {"code_bytes": 9999},
        {"tensor_core": "mma.sync, wgmma.mma_async"},
    ],
)
def test_less_than_the_budget_is_no_finding(better):
    assert kinds(replace(TAKEN, **better)) == []


@pytest.mark.parametrize(
    ("worse", "kind"),
    [
        ({"stack_bytes": 8, "spills": 2}, ["stack", "spill"]),
        ({"spills": 1}, ["spill"]),
        ({"scalar_spills": 1}, ["spill"]),
        ({"shared_bytes": 49153}, ["shared"]),
        ({"shared_bytes": 227 * 1024 + 1}, ["shared"]),
        ({"tensor_core": None}, ["tensor-core"]),
        ({"tensor_core": "mma.sync"}, ["tensor-core"]),
        ({"wide_loads": 0}, ["wide-load"]),
        ({"registers": 97}, ["registers"]),
        ({"unmasked": 2, "bounds": 3}, ["mask"]),
        ({"bounds": 3}, ["mask"]),
    ],
)
def test_more_than_the_budget_is_named(worse, kind):
    assert kinds(replace(TAKEN, **worse)) == kind


def test_registers_count_in_the_units_that_the_device_hands_out():
    assert kinds(replace(TAKEN, registers=95), replace(TAKEN, registers=90)) == []
    assert kinds(replace(TAKEN, registers=97), replace(TAKEN, registers=96)) == ["registers"]


def test_a_kernel_that_does_not_compile_is_only_that():
    (finding,) = judge(made(None, "CompilationError: no"), Budgets("3.9"))
    assert str(finding) == "SK01 compile: attend bf16-d128 on sm_90: does not compile: CompilationError: no"


def test_a_kernel_without_a_budget_is_held_to_the_device_all_the_same():
    found = judge(made(replace(TAKEN, stack_bytes=16, shared_bytes=10**6)), Budgets("3.9"))
    assert [finding.kind for finding in found] == ["stack", "shared", "no-budget"]


def test_stack_is_refused_unless_allowed():
    spilling = replace(TAKEN, stack_bytes=16)
    assert [finding.kind for finding in refused(made(spilling), None)] == ["stack"]
    assert [finding.kind for finding in refused(made(spilling), Allowance("known", stack_bytes=8))] == ["stack"]
    assert list(refused(made(spilling), Allowance("known", stack_bytes=16))) == []


def test_shared_memory_of_the_device_is_refused_unless_allowed():
    large = replace(TAKEN, shared_bytes=100 * 1024)
    assert list(refused(made(large), None)) == []
    (finding,) = refused(made(large, target="sm_120"), None)
    assert finding.message == "102400 bytes of shared memory, the device has 101376"
    allowed = Allowance("not launched there", shared_bytes=102400)
    assert list(refused(made(large, target="sm_120"), allowed)) == []


def test_a_budget_above_an_allowance_is_still_a_finding():
    spilling = replace(TAKEN, stack_bytes=16)
    assert kinds(spilling, spilling) == ["stack"]
    assert kinds(spilling, spilling, Allowance("known", stack_bytes=16)) == []


def test_budgets_of_no_kernel_are_stale_among_what_was_looked_at():
    other = Key("gone", "bf16", "sm_80")
    budgets = Budgets("3.9", {KEY: TAKEN, other: TAKEN}, {other: Allowance("x", stack_bytes=1)})
    assert [str(finding) for finding in stale(budgets, {KEY}, [], [])] == [
        "SK10 stale-budget: gone bf16 on sm_80: there is no such kernel; its budget can go",
        "SK10 stale-budget: gone bf16 on sm_80: there is no such kernel; its allowance can go",
    ]
    assert stale(budgets, {KEY}, ["attend"], []) == []
    assert stale(budgets, {KEY}, [], ["sm_90"]) == []


def test_an_update_keeps_what_was_not_looked_at_and_all_allowances():
    other, gone = Key("other", "bf16", "sm_80"), Key("gone", "bf16", "sm_80")
    allowances = {other: Allowance("x", stack_bytes=1)}
    after = updated(Budgets("3.9", {other: TAKEN, gone: TAKEN}, allowances), [made()], [gone])
    assert after == Budgets("3.9", {other: TAKEN, KEY: TAKEN}, allowances)


def test_codes_are_unique():
    assert len({kind.code for kind in KINDS.values()}) == len(KINDS)
