"""Weights by name: from a checkpoint, or drawn from a seed."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open

from staticfire.engine.errors import CheckpointError
from staticfire.engine.loader.check import check, summary
from staticfire.engine.loader.index import read_index
from staticfire.engine.loader.spec import TensorSpec
from staticfire.engine.parallel.cut import cut
from staticfire.engine.parallel.split import Part


class Weights(Protocol):
    """Where a model takes its tensors from; every required one is taken exactly once."""

    dtype: torch.dtype

    def take(self, name: str, part: Part | None = None) -> torch.Tensor:
        """Return the tensor called `name`, or a part of it, in the compute dtype; it is the caller's own."""

    def finish(self) -> None:
        """Assert that nothing was left behind."""


class _Ledger:
    """Counts what is still to be taken."""

    def __init__(self, specs: Iterable[TensorSpec], dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.specs = {spec.name: spec for spec in specs}
        self.left = {name for name, spec in self.specs.items() if spec.presence == "required"}

    def tick(self, name: str) -> TensorSpec:
        assert name in self.left, f"the model takes {name!r} twice, or never declared it"
        self.left.remove(name)
        return self.specs[name]

    def finish(self) -> None:
        """Assert that the model took every tensor it declared."""
        assert not self.left, f"the model declared but never took {sorted(self.left)}"


class CheckpointWeights(_Ledger):
    """Tensors of a safetensors checkpoint, all checked before the first is read, then read one at a time."""

    def __init__(self, folder: Path, specs: Iterable[TensorSpec], dtype: torch.dtype) -> None:
        """Open the checkpoint in `folder` and check it against `specs`.

        Raises:
            CheckpointError: Anything is missing, unexpected, mis-shaped, not float, truncated; all faults at once.
        """
        super().__init__(specs, dtype)
        faults: list[str] = []
        self._entries = read_index(folder, faults)
        if self._entries or not faults:
            check(self._entries, self.specs.values(), faults)
        self._files: dict[Path, Any] = {}
        if not faults:
            faults.extend(self._tied_faults())
        if faults:
            raise CheckpointError(f"{folder}: {len(faults)} fault(s) in the checkpoint:\n{summary(faults)}")

    def take(self, name: str, part: Part | None = None) -> torch.Tensor:
        """Return the tensor called `name`, or a part of it, in the compute dtype.

        Raises:
            CheckpointError: It holds NaN or an infinity, or a number that is one in this dtype.
        """
        self.tick(name)
        whole = self._read(name)
        tensor = whole.to(self.dtype, copy=True) if part is None else cut(whole, part).to(self.dtype)
        if not bool(tensor.isfinite().all()):
            whole = whole.to(self.dtype)
            where = (~whole.isfinite()).nonzero()[0].tolist()
            raise CheckpointError(
                f"{self._entries[name].file}: tensor {name!r} holds {float(whole[tuple(where)])} at {where} "
                f"as {str(self.dtype).removeprefix('torch.')}; a weight is finite"
            )
        return tensor

    def finish(self) -> None:
        """Assert that every tensor was taken, and let the files go."""
        super().finish()
        self._files.clear()

    def _read(self, name: str) -> torch.Tensor:
        path = self._entries[name].file
        try:
            if path not in self._files:
                self._files[path] = safe_open(path, framework="pt")
            tensor: torch.Tensor = self._files[path].get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise CheckpointError(f"{path}: tensor {name!r} cannot be read: {error}") from error
        return tensor

    def _tied_faults(self) -> list[str]:
        return [
            f"{self._entries[name].file.name}: tensor {name!r} differs from {spec.same_as!r}, "
            "to which config.json ties it"
            for name, spec in self.specs.items()
            if spec.presence == "tied" and spec.same_as and name in self._entries
            if not torch.equal(self._read(name), self._read(spec.same_as))
        ]


class DummyWeights(_Ledger):
    """Tensors drawn from a seed and their name: the same whatever the order in which they are taken."""

    def __init__(self, specs: Iterable[TensorSpec], dtype: torch.dtype, seed: int) -> None:
        """Prepare to draw the tensors of `specs`."""
        super().__init__(specs, dtype)
        self._seed = seed
        self._order = {name: number for number, name in enumerate(self.specs)}

    def take(self, name: str, part: Part | None = None) -> torch.Tensor:
        """Draw the tensor called `name`, all of it, and keep the part: every rank draws the same."""
        spec = self.tick(name)
        generator = torch.Generator().manual_seed((self._seed << 20) + self._order[name])
        whole = _draw(spec, generator)
        return (whole if part is None else cut(whole, part)).to(self.dtype)


def _draw(spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """One float32 tensor; see `TensorSpec.init`."""
    if spec.init == "ones":
        return torch.ones(spec.shape)
    if spec.init == "a_log":
        return torch.arange(1, spec.shape[-1] + 1, dtype=torch.float32).log().expand(spec.shape).contiguous()
    if spec.init == "dt_bias":
        low, high = math.log(1e-3), math.log(1e-1)
        step = torch.exp(torch.rand(spec.shape, generator=generator) * (high - low) + low)
        return step + torch.log(-torch.expm1(-step))
    return torch.randn(spec.shape, generator=generator) * (3 / math.sqrt(spec.shape[-1]))
