"""Says at the end of a run which models stood for others."""

import sys
from collections.abc import Mapping
from typing import Any, Final

import pytest

NAME: Final = "staticfire-announce"


class AnnouncePlugin:
    """Of a run in one process; under xdist the controller collects what its workers say."""

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write what this process replaced."""
        models: Any = sys.modules.get("staticfire.harness.plugin.models")
        if models is not None:
            summarise(terminalreporter, models.announced())


def summarise(terminalreporter: pytest.TerminalReporter, announced: Mapping[str, str]) -> None:
    """Write one line for each model that was replaced."""
    for asked, local in sorted(announced.items()):
        terminalreporter.write_line(f"staticfire: {asked} stood for the local model {local}")


def register(config: pytest.Config) -> None:
    """Say it at the end of this run, once."""
    if not config.pluginmanager.hasplugin(NAME) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(AnnouncePlugin(), NAME)
