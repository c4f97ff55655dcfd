"""The one comparator, and allocations that catch a kernel reading or writing where it must not."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from staticfire.kernels.tolerances import tolerance


class Errors(NamedTuple):
    """How far one tensor is from another.

    Attributes:
        max_error: Largest |actual - expected| / RMS(expected) over finite elements.
        rms_error: RMS(actual - expected) / RMS(expected) over finite elements.
        worst: Coordinates of the largest error; None for an empty tensor.
    """

    max_error: float
    rms_error: float
    worst: tuple[int, ...] | None


def assert_close(op: str, actual: Tensor, expected: Tensor, *, dtype: torch.dtype | None = None) -> None:
    """Fail unless `actual` is `expected` within the op's tolerance.

    Shape and dtype are equal; NaNs and infinities stand in the same places with the same signs; integers are
    equal; the finite rest obeys both bounds of the table.

    Args:
        op: Name of the public function, the key into the table.
        actual: What the path under test returned.
        expected: What the reference returned.
        dtype: dtype of the op's inputs, where the outputs have another.

    Raises:
        AssertionError: They differ; the message names the first or the worst coordinate, and both values.
    """
    _assert_same_form(op, actual, expected)
    if not expected.dtype.is_floating_point:
        _assert_same_where(op, "integers", actual == expected, actual, expected)
        return
    _assert_same_where(op, "NaN", actual.isnan() == expected.isnan(), actual, expected)
    infinite = actual.isinf() | expected.isinf()
    _assert_same_where(op, "infinities", ~infinite | (actual == expected), actual, expected)
    bounds, errors = tolerance(op, dtype or expected.dtype), measure(actual, expected)
    if errors.max_error <= bounds.max_error and errors.rms_error <= bounds.rms_error:
        return
    where = errors.worst or ()
    raise AssertionError(
        f"{op}: max error {errors.max_error:.3g} RMS (allowed {bounds.max_error:.3g}), RMS error "
        f"{errors.rms_error:.3g} (allowed {bounds.rms_error:.3g}); worst at {list(where)}: "
        f"got {actual[where].item()!r}, expected {expected[where].item()!r}; {bounds.reason}"
    )


def measure(actual: Tensor, expected: Tensor) -> Errors:
    """Measure the error of finite elements, in units of the RMS of the expected ones.

    Args:
        actual: Any floating-point tensor.
        expected: One of the same shape. If all its finite elements are zero, any difference is infinite.

    Returns:
        The errors, 0 for tensors without finite elements.
    """
    finite = actual.isfinite() & expected.isfinite()
    target = torch.where(finite, expected, 0).to(torch.float64)
    gap = (torch.where(finite, actual, 0).to(torch.float64) - target).abs()
    if not bool(finite.any()):
        return Errors(0.0, 0.0, None)
    count = int(finite.sum())
    scale = float((target.square().sum() / count).sqrt())
    flat = int(gap.argmax())
    worst = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), gap.shape))
    largest, rms = float(gap.max()), float((gap.square().sum() / count).sqrt())
    if largest == 0:
        return Errors(0.0, 0.0, worst)
    if scale == 0:
        return Errors(torch.inf, torch.inf, worst)
    return Errors(largest / scale, rms / scale, worst)


def _assert_same_form(op: str, actual: Tensor, expected: Tensor) -> None:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise AssertionError(
            f"{op}: got {list(actual.shape)} {actual.dtype}, expected {list(expected.shape)} {expected.dtype}"
        )


def _assert_same_where(op: str, what: str, same: Tensor, actual: Tensor, expected: Tensor) -> None:
    if bool(same.all()):
        return
    where = tuple(int(i) for i in (~same).nonzero()[0])
    raise AssertionError(
        f"{op}: {what} differ at {int((~same).sum())} of {same.numel()} places, first at {list(where)}: "
        f"got {actual[where].item()!r}, expected {expected[where].item()!r}"
    )


def poisoned(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Allocate a tensor full of values that spoil whatever reads them: NaN, or the smallest integer.

    Args:
        shape: Its shape.
        dtype: Any floating-point or integer dtype.

    Returns:
        The tensor.
    """
    return torch.full(shape, torch.nan if dtype.is_floating_point else torch.iinfo(dtype).min, dtype=dtype)


class Embedded(NamedTuple):
    """A tensor inside a poisoned buffer.

    Attributes:
        view: The tensor: not contiguous in dimension 0, at an offset, with poison before, between and after rows.
        buffer: The memory around it, one row of it per row of the view plus one on either side.
        before: Copy of `buffer` when it was made.
    """

    view: Tensor
    buffer: Tensor
    before: Tensor

    def assert_canaries(self) -> None:
        """Fail if a write left the view."""
        width = self.view[0].numel() if self.view.shape[0] else 0
        kept, now = self.before.clone(), self.buffer.clone()
        kept[1:-1, 1 : 1 + width] = 0
        now[1:-1, 1 : 1 + width] = 0
        if not bits_equal(kept, now):
            raise AssertionError("a write left its tensor: the poison around it has changed")


def embed(tensor: Tensor, *, swap: bool = False) -> Embedded:
    """Copy a tensor into the middle of poison, as a state lies in a pool of larger pages.

    Args:
        tensor: [N, ...].
        swap: Whether the last two dimensions change places in memory.

    Returns:
        The view (equal to `tensor`), and the means to check what lies around it.
    """
    rows, inner = tensor.shape[0], tensor.shape[1:]
    width = int(torch.Size(inner).numel())
    buffer = poisoned(rows + 2, width + 3, dtype=tensor.dtype)
    laid = (*inner[:-2], inner[-1], inner[-2]) if swap else tuple(inner)
    strides = [1] * len(laid)
    for axis in range(len(laid) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * laid[axis + 1]
    view = buffer.as_strided((rows, *laid), (width + 3, *strides), width + 4)
    if swap:
        view = view.transpose(-1, -2)
    view.copy_(tensor)
    return Embedded(view, buffer, buffer.clone())


def bits_equal(first: Tensor, second: Tensor) -> bool:
    """Whether two tensors have the same shape, dtype and bits; unlike `==`, NaN equals itself and 0 is not -0.

    Args:
        first: Any tensor.
        second: Any tensor.
    """
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return torch.equal(
        first.reshape(-1).contiguous().view(torch.uint8), second.reshape(-1).contiguous().view(torch.uint8)
    )


def assert_untouched(before: Tensor, after: Tensor, touched: Iterable[int]) -> None:
    """Fail unless every slot that an op had no business with kept its bits.

    Args:
        before: [N, ...], the state before the op.
        after: The state after it.
        touched: Slots that the op was to write; negative ones are no slots.

    Raises:
        AssertionError: Another slot changed.
    """
    allowed = {slot for slot in touched if slot >= 0}
    changed = [s for s in range(before.shape[0]) if s not in allowed and not bits_equal(before[s], after[s])]
    if changed:
        raise AssertionError(f"slots {changed} changed, though only {sorted(allowed)} were named")
