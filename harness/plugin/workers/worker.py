"""The worker's side: says what it does, and hands over what the controller must know."""

import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from staticfire.harness.plugin.workers.journal import WorkerJournal

KEY: Final = "staticfire"
MISTAKE: Final = "staticfire-mistake"
"""Keys of a worker's output: which ids stood for local models, and what a user has to mend before anything can run."""


class WorkerPlugin:
    """Keeps a journal, and leaves the table of groups."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.folder = folder
        side: Any = config  # xdist adds to it
        self._output: dict[str, Any] = side.workeroutput
        self.worker = str(side.workerinput["workerid"])
        self._journal = WorkerJournal(folder, self.worker)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Hand over a mistake that stops the run: xdist by itself only sees a worker that ends without work."""
        try:
            return (yield)
        except pytest.UsageError as mistake:
            self._output[MISTAKE] = str(mistake)
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> None:
        """A file is about to be imported."""
        if isinstance(collector, pytest.File):
            self._journal.note(collector.nodeid, "collection")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Before xdist tells the controller that everything is collected."""
        self._journal.note("", "collected")
        cells = _cells()
        groups = {} if cells is None else cells.groups(session.items)
        if groups:
            from staticfire.harness.plugin.workers.schedule import write  # noqa: PLC0415 -- costs xdist's schedulers

            write(self.folder, groups, self.worker)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """From the first fixture to the last."""
        self._journal.note(item.nodeid, "started", _told(item))
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


def _cells() -> Any:
    """The module about cells; None where no marker asked for any, so that nobody imported it."""
    return sys.modules.get("staticfire.harness.plugin.cells")


def _told(item: pytest.Item) -> dict[str, Any]:
    """What a death must not take along: the tags of a cell, and where it comes from."""
    cells = _cells()
    test = None if cells is None else item.stash.get(cells.TEST, None)
    if test is None:
        return {}
    tags = {name: value for name, value in item.user_properties if isinstance(value, str)}
    return {"tags": tags, "file": test.source.file, "cell": test.cell.id}
