"""The worker's side: says what it does, and hands over what the controller must know."""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from staticfire.harness.plugin.workers.journal import WorkerJournal

KEY: Final = "staticfire"


class WorkerPlugin:
    """Keeps a journal, and leaves the table of groups."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.folder = folder
        side: Any = config  # xdist adds to it
        self._output: dict[str, Any] = side.workeroutput
        self.worker = str(side.workerinput["workerid"])
        self._journal = WorkerJournal(folder, self.worker)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Before xdist tells the controller that everything is collected."""
        cells: Any = sys.modules.get("staticfire.harness.plugin.cells")  # nobody imported it where there are none
        groups = {} if cells is None else cells.groups(session.items)
        if groups:
            from staticfire.harness.plugin.workers.schedule import write  # noqa: PLC0415 -- costs xdist's schedulers

            write(self.folder, groups, self.worker)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """From the first fixture to the last."""
        self._journal.note(item.nodeid, "started")
        answer = yield
        self._journal.note(item.nodeid, "finished")
        return answer

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        """The body begins."""
        self._journal.note(item.nodeid, "call")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """The fixtures end."""
        self._journal.note(item.nodeid, "teardown")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Hand over which ids stood for local models."""
        models = sys.modules.get("staticfire.harness.plugin.models")
        if models is not None:
            self._output[KEY] = models.announced()
        self._journal.close()
