import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl

from staticfire.kernels.interpreter import capabilities
from staticfire.kernels.narrow import narrow
from staticfire.kernels.parity import assert_repeatable, poisoned_allocations, shuffled_programs
from staticfire.kernels.testing import bits_equal

pytestmark = [pytest.mark.engine, pytest.mark.interp]


def test_what_kernels_rely_on_is_right():
    found = capabilities()
    assert {torch.float64, torch.float32, torch.float16} <= found.dot
    assert {torch.float64, torch.float32, torch.float16} <= found.arithmetic
    assert {torch.float32, torch.float16} <= found.conversion


def test_a_wrong_product_is_noticed(monkeypatch):
    from triton.runtime.interpreter import InterpreterBuilder

    right = InterpreterBuilder.create_dot
    monkeypatch.setattr(InterpreterBuilder, "create_dot", lambda self, a, b, d, *rest: right(self, b, a, d, *rest))
    assert capabilities.__wrapped__().dot == frozenset()


@triton.jit
def _narrow(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, narrow(tl.load(x + i), out.dtype.element_ty))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_narrowing_rounds_as_torch_does(dtype):
    special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 3.4e38, -3.4e38, 1e-40])
    ties = 1 + torch.arange(64) * 2.0**-11
    x = torch.cat([special, ties, -ties, torch.randn(888, generator=torch.Generator().manual_seed(0)) * 1e3])
    out = torch.empty(1024, dtype=dtype)
    _narrow[(1,)](x, out, 1024)
    assert torch.equal(out.isnan(), x.isnan())
    assert bits_equal(out[~x.isnan()], x[~x.isnan()].to(dtype))


@triton.jit
def _sum_so_far(x, out):  # every program relies on those before it
    i = tl.program_id(0)
    before = tl.load(out + i - 1, mask=i > 0, other=0)
    tl.store(out + i, before + tl.load(x + i))


@triton.jit
def _double(x, out):
    i = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(out + i, 2 * tl.load(x + i))


@triton.jit
def _accumulate(x, out):
    tl.store(out, tl.load(out) + tl.load(x))


def test_programs_that_rely_on_each_other_are_found():
    x = torch.arange(1.0, 9.0)

    def run():
        out = torch.zeros(8)
        _sum_so_far[(8,)](x, out)
        return [out]

    assert torch.equal(run()[0], x.cumsum(0))
    with pytest.raises(AssertionError, match="programs in another order"):
        assert_repeatable(run)
    assert_repeatable(run, shuffle=False)


def test_a_launch_that_adds_to_its_output_is_found():
    x, out = torch.ones(1), torch.zeros(1)

    def run():
        _accumulate[(1,)](x, out)
        return [out.clone()]

    with pytest.raises(AssertionError, match="a second run"):
        assert_repeatable(run)


def test_every_program_runs_once_in_any_order():
    x, out = torch.arange(12.0), torch.zeros(12)
    with shuffled_programs(5):
        _double[(4, 3)](x, out)
    assert torch.equal(out, 2 * x)


def test_allocations_are_poisoned_and_then_not():
    with poisoned_allocations():
        assert torch.empty(3).isnan().all()
        assert torch.zeros(3).new_empty(2).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_without_interpreter_the_error_says_what_to_set():
    program = (
        "import os; os.environ.pop('TRITON_INTERPRET'); import torch\n"
        "from staticfire.kernels.rms_norm import rms_norm\n"
        "rms_norm(torch.ones(2, 4), torch.ones(4), 1e-6, backend='triton')"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 1
    assert "set TRITON_INTERPRET=1 before anything imports triton" in ran.stderr.splitlines()[-1]
