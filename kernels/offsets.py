"""Width of offsets in Triton's interpreter: what is added to a pointer must not have been multiplied in 32 bits.

Where a stride is an argument, a test lays its axis beyond 2^31 elements and sees the offset wrap. The stride of an
output is a product of its sizes, and only 2^31 elements worked through would show it. Here the kernels' arithmetic is
watched instead, whatever the sizes.

A product in fewer than 64 bits is followed through sums and changes of shape to a pointer. Of its factors:

- both known only at launch, say a row and a length: it may be too large, and widened afterwards it is too late;
- one fixed at compile time, a size: too large as an offset, but let through once widened, since it is then taken for
  what a tile's number times its length is, the number of an item, and those have 32 bits;
- a power of two: let through, as the length of a tile. Tests must therefore have sizes that are none.

What a minimum, quotient or comparison makes of a product is bounded by its other operand and is not followed.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from typing import Any

from triton.runtime import interpreter

_CONSTANTS = ("get_int8", "get_int16", "get_int32", "get_int64", "get_uint8", "get_uint16", "get_uint32", "get_uint64")
_SHAPES = ("create_splat", "create_broadcast", "create_expand_dims", "create_reshape", "create_trans")
_SUMS = ("create_add", "create_sub")

_FIXED, _WIDTH = "staticfire.fixed", "staticfire.width"
"""What handles of values are marked with: fixed at compile time, and how a product in them was taken."""


class _Product(IntEnum):
    """What became of the products in a value, the worst of them."""

    NONE = 0
    SCALED = 1
    """By a factor fixed at compile time, in 32 bits."""
    NARROW = 2
    """Of two factors that the launch decides, in 32 bits."""


@contextmanager
def strict_offsets() -> Iterator[None]:
    """Fail every interpreted launch inside that adds a product taken in fewer than 64 bits to a pointer.

    Raises:
        triton.runtime.errors.InterpreterError: One did.
    """
    builder = interpreter.interpreter_builder
    replaced: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(_CONSTANTS, _constant),
        **dict.fromkeys(_SHAPES, _reshaped),
        **dict.fromkeys(_SUMS, _sum),
        "create_mul": _multiplied,
        "create_int_cast": _cast,
        "create_addptr": _added_to_pointer,
    }
    before = {name: getattr(builder, name) for name in replaced}
    for name, watch in replaced.items():
        setattr(builder, name, partial(watch, before[name]))
    try:
        yield
    finally:
        for name in replaced:
            delattr(builder, name)


def _constant(plain: Callable[..., Any], value: int) -> Any:
    return _mark(plain(value), fixed=True)


def _reshaped(plain: Callable[..., Any], *arguments: Any) -> Any:
    (source,) = (a for a in arguments if isinstance(a, interpreter.TensorHandle))
    return _mark(plain(*arguments), _product(source), fixed=_fixed(source))


def _sum(plain: Callable[..., Any], left: Any, right: Any) -> Any:
    return _mark(plain(left, right), max(_product(left), _product(right)))


def _multiplied(plain: Callable[..., Any], left: Any, right: Any) -> Any:
    worst = max(_product(left), _product(right))
    if left.data.dtype.itemsize < 8:
        worst = max(worst, _taken_of(left, right))
    return _mark(plain(left, right), worst, fixed=_fixed(left) and _fixed(right))


def _taken_of(left: Any, right: Any) -> _Product:
    if not (_fixed(left) or _fixed(right)):
        return _Product.NARROW
    if _fixed(left) and _fixed(right):
        return _Product.NONE
    factor = int((left if _fixed(left) else right).data.flat[0])
    return _Product.NONE if factor & (factor - 1) == 0 else _Product.SCALED


def _cast(plain: Callable[..., Any], source: Any, *arguments: Any) -> Any:
    cast, product = plain(source, *arguments), _product(source)
    if product is _Product.SCALED and cast.data.dtype.itemsize == 8:
        product = _Product.NONE
    return _mark(cast, product, fixed=_fixed(source))


def _added_to_pointer(plain: Callable[..., Any], pointer: Any, offset: Any) -> Any:
    if _product(offset) is not _Product.NONE:
        raise AssertionError(
            f"an offset holds a product that was taken in 32 bits ({_product(offset).name.lower()}), which wraps in a "
            "tensor of 2^31 elements: widen a factor, .to(tl.int64), before it is multiplied"
        )
    return plain(pointer, offset)


def _product(handle: Any) -> _Product:
    return _Product(handle.attr.get(_WIDTH, _Product.NONE))


def _fixed(handle: Any) -> bool:
    return bool(handle.attr.get(_FIXED, False))


def _mark(handle: Any, product: _Product = _Product.NONE, *, fixed: bool = False) -> Any:
    handle.attr[_WIDTH], handle.attr[_FIXED] = product, fixed
    return handle
