"""Kernels of a run: every backend has a pool of workers of its own, for a process has one."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal

from staticfire.engine.process.kernels import kernel_environment
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.errors import RunUsageError

AXIS: Final = "kernel_backend"
Backend = Literal["torch", "triton"]
BACKENDS: Final[Mapping[str, Mapping[str, str]]] = {
    "torch": kernel_environment("torch"),
    "triton": kernel_environment("triton"),
}
"""Backend -> what its workers are told before they import triton."""


def backend_of(cell: Cell) -> str:
    """The backend of a cell's engine."""
    return str(cell.config.get(AXIS, "torch"))


def with_backend(cells: Iterable[Cell], backend: Backend | None) -> tuple[Cell, ...]:
    """The same cells on the kernels of a backend; None leaves them as they are.

    Raises:
        RunUsageError: The matrix has the backend as an axis.
    """
    if backend is None:
        return tuple(cells)
    moved = []
    for cell in cells:
        if AXIS in cell.axes:
            raise RunUsageError(f"--kernel-backend: the matrix has it as an axis; say --select {AXIS}={backend}")
        moved.append(replace(cell, fixed={**cell.fixed, AXIS: backend}))
    return tuple(moved)
