"""The libraries that kernels need, which are an extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from staticfire.harness.errors import InputError


@contextmanager
def needed() -> Iterator[None]:
    """Say in one line what is missing.

    Raises:
        InputError: Something is imported inside that is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("staticfire"):
            raise
        raise InputError(
            f"Kernels need {error.name}, which is not installed: pip install 'staticfire[engine]' "
            "(Triton is there for Linux alone)."
        ) from error
