"""One cell of a matrix: a configuration with a name and an expected verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from staticfire.harness.matrix.workload import Workload

UNSET = "unset"
"""Axis value that means: leave the keyword out, let the engine decide."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a matrix.

    Attributes:
        id: Reads aloud, stable under reordering; the pytest id, the Buildkite tag and the report anchor.
        axes: Axis name -> value. Axis names are engine keywords (`block_size`), besides `model`.
        verdict: `valid`, or `refused` when the engine must refuse it.
        rules: Codes of every rule that must refuse it; empty when valid.
        reason: For a refused cell, why (the constraint's reason).
        fixed: Engine keywords that are equal in every cell of the matrix (`max_model_len`).
        workload: What the cell is asked, equal in every cell too.
    """

    id: str
    axes: Mapping[str, Any]
    verdict: Literal["valid", "refused"]
    rules: tuple[str, ...] = ()
    reason: str | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    workload: Workload = field(default_factory=Workload)

    @property
    def model(self) -> str:
        """Name of the model in `matrices/models/`."""
        return str(self.axes["model"])

    @property
    def config(self) -> dict[str, Any]:
        """The engine keywords as a user would type them."""
        typed = {name: value for name, value in self.axes.items() if name != "model" and value != UNSET}
        return {**self.fixed, **typed}

    @property
    def group(self) -> tuple[str, str, str]:
        """The metamorphic group: cells of equal checkpoint, dtype and quantization must agree in their outputs."""
        return self.model, str(self.axes.get("dtype", UNSET)), str(self.axes.get("quantization", UNSET))
