"""Errors of collection stay red, whatever other plugins make of the exit code; a file without tests is one."""

import os
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import pytest

from staticfire.harness.plugin.guards.base import PREFIX

NAME: Final = "collection"
KEY: Final = f"staticfire-guard-{NAME}"
IMPORT_ERROR: Final = re.compile(r"(?i)\bimport(s|ed|ing|error)?\b|\bModuleNotFoundError\b|\bno module named\b")


class CollectionGuard:
    """Keeps import errors and empty test files from turning green."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.errors: dict[str, str] = {}
        self._explicit = [str(argument).split("::")[0] for argument in config.args]
        self._holding: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected, and what held nothing."""
        if report.failed:
            lines = str(report.longrepr).strip().splitlines()
            self.errors[report.nodeid] = lines[-1] if lines else "collection failed"
            return
        if not report.skipped:
            return
        self._holding.add(report.nodeid)  # it may well have tests, on another day
        if _hides_an_import_error(report):
            self.errors[report.nodeid] = (
                f"skipped itself: {_reason(report)}; where that is meant, raise TypedSkip('package', '…', "
                "allow_module_level=True) of staticfire.harness.plugin.helpers"
            )

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Note the file; what is deselected later was there."""
        self._holding.add(item.nodeid.split("::")[0])

    def pytest_collection_finish(self) -> None:
        """A file that was named, and holds no test, is a test that never runs."""
        if getattr(self.config.option, "lf", False):
            return  # pytest leaves out files without a failure, as if they were empty
        for name in self._explicit:
            path = self.config.invocation_params.dir / name
            if path.is_file() and path.suffix == ".py":
                nodeid = _nodeid(self.config, path)
                if nodeid not in self._holding and nodeid not in self.errors:
                    self.errors[nodeid] = "named on the command line, and holds no test"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear from a worker of xdist, since this process collects nothing."""
        self.errors |= getattr(node, "workeroutput", {}).get(KEY) or {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Turn green red, after everybody else has spoken; what is red already stays as it is."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output[KEY] = self.errors
        answer = yield
        if self.errors and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        return answer

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name them once more, at the end."""
        if self.errors:
            terminalreporter.section(f"{PREFIX} {NAME}")
            for nodeid, why in self.errors.items():
                terminalreporter.write_line(f"{nodeid}: {why}")


def _nodeid(config: pytest.Config, path: Path) -> str:
    return Path(os.path.relpath(path, config.rootpath)).as_posix()


def _reason(report: pytest.CollectReport) -> str:
    longrepr = report.longrepr
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


def _hides_an_import_error(report: pytest.CollectReport) -> bool:
    """Whether a module skipped itself because of an import; a typed reason says which package is missing."""
    reason = _reason(report).removeprefix("Skipped: ")
    return IMPORT_ERROR.search(reason) is not None and not reason.startswith(("package: ", "version: ", "device: "))
