"""Collection must leave CUDA alone: a forked test cannot use it afterwards, and others start in another way."""

import multiprocessing
import sys
from collections.abc import Generator
from typing import Any, Final

import pytest

from staticfire.harness.plugin.guards.base import PREFIX

NAME: Final = "cuda"


class CudaGuard:
    """Stops a run whose collection initialised CUDA or chose how processes start, and names the file."""

    def __init__(self, config: pytest.Config) -> None:  # noqa: ARG002 -- one signature for all guards
        self.faults: list[str] = []
        self._initialised = _initialised()
        self._method = multiprocessing.get_start_method(allow_none=True)

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        """Look after each file: the first one that changes something is the one to name."""
        answer = yield
        where = collector.nodeid or "the first conftest.py"
        if not self._initialised and _initialised():
            self._initialised = True
            self.faults.append(f"collecting {where} initialised CUDA: forked tests cannot use it, and others spawn")
        method = multiprocessing.get_start_method(allow_none=True)
        if method != self._method:
            self.faults.append(f"collecting {where} made processes start by {method}, not by {self._method}")
            self._method = method
        return answer

    def pytest_collection_finish(self) -> None:
        """Stop before a test runs."""
        if self.faults:
            raise pytest.UsageError("\n".join(f"{PREFIX} {NAME}: {fault}" for fault in self.faults))


def _initialised() -> bool:
    """Whether CUDA is in use by this process; torch is asked only where somebody has imported it."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return bool(cuda is not None and cuda.is_initialized())
