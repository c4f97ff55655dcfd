"""`--sf-shard K/N`: the K-th part of what was collected, cut by recorded durations and grouped by model."""

from pathlib import Path
from typing import Any, Final

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.plugin.cells import TEST
from staticfire.harness.shard import durations
from staticfire.harness.shard.split import Item, split

NAME: Final = "staticfire-shard"


class ShardPlugin:
    """Deselects what belongs to other shards."""

    def __init__(self, index: int, count: int, reports: list[str]) -> None:
        self.index = index
        self.count = count
        self.line = ""
        self.empty = False
        try:
            self._cases = durations.cases(Path(report) for report in reports)
        except InputError as error:
            raise pytest.UsageError(f"--sf-durations: {error}") from error

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep one shard; the tests of a model are kept together, in the order in which they were collected."""
        measured = {f"{case.classname}::{case.name}": case.seconds for case in self._cases if case.outcome != "skipped"}
        seconds = {item.nodeid: measured[name] for item in items if (name := reported_name(item)) in measured}
        shards = split((Item(item.nodeid, _group(item)) for item in items), self.count, seconds)
        shard = shards[self.index - 1]
        mine = set(shard.ids)
        kept = [item for item in items if item.nodeid in mine]
        others = [item for item in items if item.nodeid not in mine]
        self.empty = not kept
        how = f"about {shard.seconds:.0f} s ({shard.predicted} never measured)" if seconds else "none ever measured"
        self.line = f"shard {self.index} of {self.count}: {len(kept)} of {len(items)} tests, {how}"
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = kept

    def pytest_report_collectionfinish(self) -> str:
        """Say which shard this is."""
        return self.line

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """More shards than tests leave some without any: that is no failure."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[NAME] = {"empty": self.empty, "line": self.line}
        if self.empty and exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK


class ControllerPart:
    """Hears from the workers which tests are in the shard, since the controller collects nothing."""

    def __init__(self, part: ShardPlugin) -> None:
        self._part = part
        self._line = ""

    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended."""
        told = getattr(node, "workeroutput", {}).get(NAME)
        if told:
            self._part.empty = self._part.empty or told["empty"]
            self._line = told["line"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say at the end what a run in one process says when it has collected."""
        if self._line:
            terminalreporter.write_line(self._line)


def reported_name(item: pytest.Item) -> str:
    """The name of a test in a JUnit file of pytest: its dotted class name and its own."""
    path, *names = item.nodeid.split("[", 1)[0].split("::")
    dotted = path.removesuffix(".py").replace("/", ".")
    return f"{'.'.join([dotted, *names[:-1]])}::{item.name}"


def _group(item: pytest.Item) -> str:
    test = item.stash.get(TEST, None)
    return "-".join(test.cell.group) if test is not None else ""
