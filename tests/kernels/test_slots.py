import pytest
import torch

from staticfire.kernels.dtypes import compute_dtype
from staticfire.kernels.slots import make_slots

pytestmark = pytest.mark.engine


def test_rows_are_none_when_every_row_has_a_slot():
    slots = make_slots(torch.tensor([3, 0, 5], dtype=torch.int32))
    assert slots.rows is None
    assert slots.indices.tolist() == [3, 0, 5]
    assert slots.indices.dtype is torch.int64


def test_padding_rows_are_left_out():
    slots = make_slots(torch.tensor([-1, 4, -7, 2]))
    assert slots.indices.tolist() == [4, 2]
    assert slots.rows is not None
    assert slots.rows.tolist() == [1, 3]


def test_an_empty_batch():
    assert make_slots(torch.empty(0, dtype=torch.int64)).indices.tolist() == []


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((torch.float16,), torch.float32),
        ((torch.bfloat16, torch.float32), torch.float32),
        ((torch.bfloat16, torch.float64), torch.float64),
        ((torch.float64, None), torch.float64),
    ],
)
def test_only_float64_computes_in_float64(dtypes, expected):
    assert compute_dtype(*(d and torch.empty(0, dtype=d) for d in dtypes)) is expected
