"""What is compiled ahead of time: a kernel with its argument types and launch choices. Imports no torch, no triton.

`kernels/<op>/variants.py` has one function `variants(target)` that lists them, with the launch choices that the op's
launcher makes on that target. A pointer or integer marked `:16` is divisible by 16, as Triton finds of aligned tensors
and round strides at a launch; an integer that equals 1 is a constant, as it is at a launch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeAlias


class TritonType(NamedTuple):
    """A dtype as the value of a constant.

    Attributes:
        name: Its name in `triton.language`, such as `float32`.
    """

    name: str


Constant: TypeAlias = int | float | bool | str | TritonType | None

FP32 = TritonType("float32")
FP64 = TritonType("float64")
BF16 = TritonType("bfloat16")
FP16 = TritonType("float16")


@dataclass(frozen=True, slots=True)
class Variant:
    """One kernel, specialised.

    Attributes:
        op: Public function that launches it.
        name: Unique within the op and the same on every target, such as `bf16-d128`.
        kernel: `package.module:function` of the jitted function.
        signature: Argument -> type, such as `*bf16:16` or `i32`; every argument that `constexprs` lacks.
        constexprs: Argument -> value: constexpr parameters, absent pointers (None), integers that equal 1.
        num_warps: Warps (wavefronts) of a program.
        num_stages: Depth of software pipelining; None where the launcher leaves it to Triton.
    """

    op: str
    name: str
    kernel: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Constant] = field(default_factory=dict)
    num_warps: int = 4
    num_stages: int | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What an op cannot do without, at given shapes: the two axes of the roofline.

    Attributes:
        read: Bytes that must come from memory, each operand once.
        written: Bytes that must go to memory.
        operations: Arithmetic operations; a multiply-add is two, an exponential or a division one.
        unit: Whose peak they are held to: the dtype of the products that tensor cores could do, else `fp32`, or
            `fp64`, of the ordinary units.
    """

    read: int
    written: int
    operations: int
    unit: str = "fp32"


ITEM: Mapping[str, int] = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "int8": 1}
"""dtype, as `cost` functions and `--shape` name it -> bytes of an element."""


def item_bytes(dtype: str) -> int:
    """Bytes of an element.

    Args:
        dtype: A key of `ITEM`.

    Returns:
        Its size.

    Raises:
        ValueError: There is no such dtype.
    """
    if dtype not in ITEM:
        raise ValueError(f"unknown dtype {dtype!r}; known: {', '.join(ITEM)}")
    return ITEM[dtype]


def at_most(op: str, **sizes: int) -> None:
    """Refuse sizes that cannot be.

    Args:
        op: For the error message.
        sizes: Each is at most the next.

    Raises:
        ValueError: One is larger.
    """
    for (name, size), (limit_name, limit) in pairwise(sizes.items()):
        if size > limit:
            raise ValueError(f"{op}: {name} is at most {limit_name}, which is {limit}; got {size}")


def pointers(dtype: str, *names: str) -> dict[str, str]:
    """Types of tensors whose memory begins at a multiple of 16 bytes.

    Args:
        dtype: In the spelling of signatures, such as `bf16`.
        names: Of the arguments.
    """
    return dict.fromkeys(names, f"*{dtype}:16")


def integers(*names: str) -> dict[str, str]:
    """Types of sizes and strides that are multiples of 16.

    Args:
        names: Of the arguments.
    """
    return dict.fromkeys(names, "i32:16")
