"""Test ids must be the same in every process: no memory addresses, no order that a hash decides."""

import re
from typing import Final

import pytest

from staticfire.harness.plugin.guards.base import PREFIX

NAME: Final = "ids"
ADDRESS: Final = re.compile(r"(\bat |<.*)0x[0-9a-fA-F]{6,}")
"""As Python shows an object; a number that a test is given, such as 0xdeadbeef, is the same everywhere."""
STEADY: Final = (bool, int, float, complex)
"""Types whose hash is the same in every process."""


class IdsGuard:
    """Stops a run whose ids differ between two collections of the same files."""

    def __init__(self, config: pytest.Config) -> None:  # noqa: ARG002 -- one signature for all guards
        self.faults: dict[str, None] = {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Sets have another order in every process."""
        for mark in metafunc.definition.iter_markers("parametrize"):
            values = mark.args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues")
            if isinstance(values, set | frozenset) and not all(isinstance(value, STEADY) for value in values):
                code = metafunc.function.__code__
                where = f"{metafunc.definition.path}:{code.co_firstlineno}: {metafunc.function.__name__}"
                names = mark.args[0] if mark.args else mark.kwargs.get("argnames")
                fault = f"{where} takes {names!r} from a set, whose order differs between processes; write sorted(...)"
                self.faults[fault] = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """An address in an id is another id in every process."""
        for item in items:
            if ADDRESS.search(item.nodeid):
                self.faults[
                    f"{item.nodeid}: the id holds a memory address; give ids=… by __name__, or pytest.param(…, id=…)"
                ] = None

    def pytest_collection_finish(self) -> None:
        """Stop before a test runs."""
        if self.faults:
            raise pytest.UsageError("\n".join(f"{PREFIX} {NAME}: {fault}" for fault in self.faults))
