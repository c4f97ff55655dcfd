"""Shapes of operands, checked before a launch: a kernel reads where strides lead, whatever its tensors hold."""

from torch import Tensor


def sizes(op: str, name: str, tensor: Tensor, dimensions: str) -> tuple[int, ...]:
    """Take the sizes of an operand that the shapes of the others follow from.

    Args:
        op: For the error message.
        name: Of the operand.
        tensor: The operand.
        dimensions: Their names, such as `T, H`.

    Returns:
        Its shape.

    Raises:
        ValueError: It has more or fewer dimensions.
    """
    if tensor.dim() != dimensions.count(",") + 1:
        raise ValueError(f"{op}: {name} is [{dimensions}]; got {list(tensor.shape)}")
    return tuple(tensor.shape)


def require_shapes(op: str, **operands: tuple[Tensor | None, tuple[int, ...]]) -> None:
    """Refuse operands of other shapes than a kernel takes them for.

    Args:
        op: For the error message.
        operands: Name -> (the tensor, None where it is not given; its shape).

    Raises:
        ValueError: One has another shape; all of them are named.
    """
    faults = [
        f"{name} is {list(shape)}; got {list(tensor.shape)}"
        for name, (tensor, shape) in operands.items()
        if tensor is not None and tensor.shape != shape
    ]
    if faults:
        raise ValueError(f"{op}: {', '.join(faults)}")


def require_rows(op: str, name: str, tensor: Tensor, starts: Tensor) -> None:
    """Refuse packed sequences of another length than their starts tell. Waits for the device.

    Args:
        op: For the error message.
        name: Of the operand.
        tensor: The sequences, one after the other.
        starts: int[B + 1], first row of each sequence, then how many rows there are.

    Raises:
        ValueError: There are more or fewer rows.
    """
    rows = int(starts[-1])
    if len(tensor) != rows:
        raise ValueError(f"{op}: {name} has as many rows as its sequences, {rows}; got {len(tensor)}")
