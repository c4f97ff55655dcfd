"""Results to Buildkite Test Engine, once: from the one process that has seen all of them, with the tags of each cell.

By itself the collector uploads from every worker: what a dead worker had seen is lost, an error of collection comes
once per worker, and with `--tx` every result comes twice. Here the workers upload nothing. The controller has every
report and the tags in it, which travel as properties; it puts them into the collector's own payload for the upload.
"""

import importlib
import logging
import os
from typing import Any, Final, Self

import pytest

from staticfire.harness.plugin.cells import COLLECTOR
from staticfire.harness.plugin.options import ENGINE

TAGS: Final = ("matrix", "cell", "engine", "model", "quantization", "cache_mode", "refused_by")
"""Properties that are tags as well."""
BATCH: Final = 100


class CollectorPlugin:
    """Takes the upload over from the collector."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tags: dict[str, dict[str, str]] = {}
        self._lines: list[str] = []
        self._failed = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the tags; a worker that died never reports the end of its test, so that is done here."""
        found = {name: str(value) for name, value in report.user_properties if name in TAGS}
        if found:
            self._tags[report.nodeid] = found
        collected = getattr(self._config, "_buildkite", None)
        if collected is None or report.when in ("setup", "call", "teardown"):
            return
        data = collected.in_flight.get(report.nodeid)
        if data is not None:
            collected.in_flight[report.nodeid] = data.failed(failure_reason=str(report.longrepr))
            collected.finalize_test(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Upload when every report is here, and before the summary, which tells how it went."""
        collected = getattr(session.config, "_buildkite", None)
        if collected is not None:
            self._take_over(collected)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many results arrived; a failure is told, and fails nothing."""
        for line in self._lines:
            terminalreporter.write_line(line, yellow=self._failed)

    def _take_over(self, collected: Any) -> None:
        engine = self._config.stash[ENGINE]
        data = tuple(self._tagged(one, engine) for one in collected.payload.data)
        payload = importlib.import_module("dataclasses").replace(collected.payload, data=data)
        collected.payload = payload
        path = self._config.getoption("jsonpath", None)
        if path:
            collected.save_payload_as_json(path, merge=self._config.getoption("mergejson", False))
        del self._config._buildkite  # type: ignore[attr-defined]  # noqa: SLF001 -- where the collector keeps itself
        self._config.pluginmanager.unregister(collected)
        if not os.environ.get("BUILDKITE_ANALYTICS_TOKEN"):
            self._failed = True
            self._lines.append("staticfire: nothing was uploaded to Test Engine: BUILDKITE_ANALYTICS_TOKEN is not set")
            return
        self._upload(payload, len(data))

    def _upload(self, payload: Any, total: int) -> None:
        api = importlib.import_module("buildkite_test_collector.collector.api").API(os.environ)
        sizes = [min(BATCH, total - begin) for begin in range(0, total, BATCH)]
        logger = logging.getLogger("buildkite-test-collector")
        with _Heard(logger) as heard:
            arrived = [response is not None for response in api.submit(payload, batch_size=BATCH)]
        sent = sum(size for size, here in zip(sizes, arrived, strict=True) if here)
        self._lines.append(f"staticfire: {sent} of {total} results uploaded to Test Engine")
        if sent < total:
            self._failed = True
            self._lines += [f"  {line}" for line in dict.fromkeys(heard.last_lines)]

    def _tagged(self, data: Any, engine: str) -> Any:
        nodeid = f"{data.scope}::{data.name}" if data.scope else data.name
        for name, value in {"engine": engine, **self._tags.get(nodeid, {})}.items():
            if name not in data.tags:
                data = data.tag_execution(name, value)
        return data


class SilentWorker:
    """In a worker: the collector has nothing to upload."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Before the collector's own end."""
        collected = getattr(config, "_buildkite", None)
        if collected is not None:
            del config._buildkite  # type: ignore[attr-defined]  # noqa: SLF001 -- where the collector keeps itself
            config.pluginmanager.unregister(collected)


class _Heard(logging.Handler):
    """What the collector says while it uploads: one line of each message, the last, which is the reason."""

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger
        self.last_lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the reason."""
        lines = record.getMessage().strip().splitlines()
        self.last_lines.append(lines[-1] if lines else "")

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)


def register(config: pytest.Config) -> None:
    """Take the upload over on this side.

    Raises:
        pytest.UsageError: The collector is not there.
    """
    if not config.pluginmanager.hasplugin(COLLECTOR):
        raise pytest.UsageError(
            "--sf-test-engine: buildkite-test-collector is not installed, or blocked by -p no:; "
            "pip install 'staticfire[buildkite]' brings it"
        )
    config.pluginmanager.register(SilentWorker() if hasattr(config, "workerinput") else CollectorPlugin(config))
