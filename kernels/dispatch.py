"""Which implementation of an op runs: named by the caller, never guessed. Imports no torch.

A backend is one file `kernels/<op>/<backend>.py` and one line in the op's registry. There is no automatic choice
and no fallback: a run that compares backends must know which one it ran.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, NoReturn, TypeVar

Backend = Literal["torch", "reference"]
"""`torch` is quick on CPU, `reference` is slow and obvious."""

F = TypeVar("F", bound=Callable[..., Any])


class Registry(dict[str, F]):
    """The implementations of one op by backend name.

    Args:
        op: Name of the op, for the error message.
        table: backend name -> function; all with the same signature.
    """

    def __init__(self, op: str, table: Mapping[str, F]) -> None:
        super().__init__(table)
        self.op = op

    def __missing__(self, backend: str) -> NoReturn:
        near = get_close_matches(str(backend), self, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{self.op}: unknown backend {backend!r}; available: {', '.join(sorted(self))}{hint}")
