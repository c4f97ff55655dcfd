"""The controller's side: who died on what, who works on which model, and what stood for what."""

import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from staticfire.harness.plugin.announce import summarise
from staticfire.harness.plugin.workers import FOLDER
from staticfire.harness.plugin.workers.journal import LastEvent, last_event
from staticfire.harness.plugin.workers.worker import KEY, MISTAKE


class ControllerPlugin:
    """Names the test that a worker died on, and gives the tests of a model to one worker."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.folder = Path(tempfile.mkdtemp(prefix="staticfire-workers-"))
        self.announced: dict[str, str] = {}
        self._deaths: dict[str, str] = {}
        self._down = ""
        self._reported: set[str] = set()

    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where its journal goes."""
        node.workerinput[FOLDER] = str(self.folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Schedules by group, file and scope are ours; every other choice is left alone."""
        if config.getvalue("dist") not in ("loadgroup", "loadfile", "loadscope"):
            return None
        from staticfire.harness.plugin.workers.schedule import make  # noqa: PLC0415 -- xdist's schedulers

        return make(config, log, self.folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """A worker has ended, or died.

        Raises:
            pytest.UsageError: It ended by a mistake of the user's, which all workers would meet.
        """
        self._down = str(node.gateway.id)
        output = getattr(node, "workeroutput", {})
        self.announced |= output.get(KEY) or {}
        if MISTAKE in output:
            raise pytest.UsageError(output[MISTAKE])
        if error:
            from staticfire.harness.plugin.workers.shared import leave  # noqa: PLC0415 -- only after a death

            leave(self.folder, self._down)
            self._deaths[self._down] = _how(node)

    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """Correct xdist, which names the next test in the worker's queue: the journal says which one was running."""
        self._reported.add(self._down)
        last = last_event(self.folder, self._down)
        if last is None:
            return
        report.location = _location(crashitem)
        how = f"worker {self._down!r} {self._deaths.get(self._down, 'died')}"
        after = f"after {last.test} had finished (process {last.pid})"
        if last.phase == "collected":
            report.longrepr = f"{how} before its first test (process {last.pid}); {crashitem} was next"
        elif last.phase != "finished":
            report.nodeid, report.location = last.test, _location(last.test)
            report.longrepr = f"{how} in the {last.phase} of {last.test} (process {last.pid})"
            _tell(report, last)
        elif last.test == crashitem:
            report.longrepr = f"{how} {after}"
            _tell(report, last)
        else:
            report.longrepr = f"not run: {how} before it began, {after}"
            culprit: Any = _report_on(last, f"{how} {after}")
            culprit.node = getattr(report, "node", None)
            self.config.hook.pytest_runtest_logreport(report=culprit)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """A death that is no test's fails the run: xdist forgets one in collection, and one in the end of a session."""
        answer = yield
        green = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if self._deaths.keys() - self._reported and session.exitstatus in green:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return answer

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say once more how workers ended."""
        from staticfire.harness.plugin.workers.shared import left  # noqa: PLC0415 -- one place for the files

        for worker, how in self._deaths.items():
            last = last_event(self.folder, worker)
            where = f", last seen in {last.test} ({last.phase})" if last is not None and last.test else ""
            where += "" if worker in self._reported else "; no test answers for it, and the run has failed"
            terminalreporter.write_line(f"staticfire: worker {worker} {how}{where}", red=True)
        summarise(terminalreporter, self.announced)
        for name in left(self.folder):
            terminalreporter.write_line(
                f"staticfire: the shared {name!r} was not stopped: its last user died", red=True
            )

    def pytest_unconfigure(self) -> None:
        """The journals have been read."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _how(node: Any) -> str:
    """How a worker's process ended, where it is a child of this one."""
    popen = getattr(getattr(node.gateway, "_io", None), "popen", None)
    try:
        code = popen.wait(timeout=2) if popen is not None else None
    except Exception:  # noqa: BLE001 -- a process of another kind; how it died is an extra
        code = None
    if code is None:
        return "died"
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"exited with code {code}"


def _report_on(last: LastEvent, message: str) -> pytest.TestReport:
    report = pytest.TestReport(last.test, _location(last.test), {}, "failed", message, "teardown")
    _tell(report, last)
    return report


def _tell(report: pytest.TestReport, last: LastEvent) -> None:
    """Say of a cell's death what its own report would have said."""
    if not last.told:
        return
    from staticfire.harness.plugin.cells import REPRODUCE  # noqa: PLC0415 -- only after the death of a cell
    from staticfire.harness.run.record import rerun_command  # noqa: PLC0415 -- the same

    report.user_properties = list(last.told["tags"].items())
    report.sections.append((REPRODUCE, rerun_command(last.told["file"], last.told["cell"])))


def _location(nodeid: str) -> tuple[str, None, str]:
    """Where pytest's own reports say that a test is: its file, and its name as the summary is headed by it."""
    path, _, names = nodeid.partition("::")
    return path, None, names.replace("::", ".")
