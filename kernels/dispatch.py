"""Which implementation of an op runs: named by the caller, never guessed. Imports no torch.

A backend is one file `kernels/<op>/<backend>.py` and one line in the op's registry. There is no automatic choice
and no fallback: a run that compares backends must know which one it ran.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, TypeVar, cast

from staticfire.kernels.names import did_you_mean

Backend = Literal["torch", "triton", "reference"]
"""`torch` is quick on CPU, `triton` is for GPUs (and for Triton's interpreter), `reference` is slow and obvious."""

F = TypeVar("F", bound=Callable[..., Any])


class Registry(dict[str, F]):
    """The implementations of one op by backend name.

    Args:
        op: Name of the op, for the error message.
        table: backend name -> function; all with the same signature.
        lazy: backend name -> `package.module:function`, imported when first asked for.
    """

    def __init__(self, op: str, table: Mapping[str, F], lazy: Mapping[str, str] | None = None) -> None:
        super().__init__(table)
        self.op = op
        self._lazy = dict(lazy or {})

    def __missing__(self, backend: str) -> F:
        target = self._lazy.get(backend)
        if target is None:
            known = sorted({*self, *self._lazy})
            hint = did_you_mean(str(backend), known)
            raise ValueError(f"{self.op}: unknown backend {backend!r}; available: {', '.join(known)}{hint}")
        module, _, name = target.partition(":")
        self[backend] = function = cast("F", getattr(import_module(module), name))
        return function
