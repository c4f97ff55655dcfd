"""What changes under pytest-xdist: who works on what, who died on what, and what all workers share."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from staticfire.harness.plugin.workers.shared import SharedSetups

FOLDER: Final = "staticfire_folder"
"""Key of a worker's input: the folder that it shares with the controller."""
_SHARED: Final = "staticfire-shared"


def register(config: pytest.Config) -> None:
    """Load the side that this process is on."""
    given: Any = getattr(config, "workerinput", None)
    if given is None:
        from staticfire.harness.plugin.workers.controller import ControllerPlugin  # noqa: PLC0415 -- this side only

        config.pluginmanager.register(ControllerPlugin(config))
    elif Path(given.get(FOLDER, "/nowhere")).is_dir():  # not on another machine
        from staticfire.harness.plugin.workers.worker import WorkerPlugin  # noqa: PLC0415 -- this side only

        config.pluginmanager.register(WorkerPlugin(config, Path(given[FOLDER])))
        setups(config)


def setups(config: pytest.Config) -> "SharedSetups":
    """The shared set-ups of this process; a run in one process shares them with nobody."""
    from staticfire.harness.plugin.workers.shared import SharedPlugin, SharedSetups  # noqa: PLC0415 -- once a process

    plugin: SharedPlugin | None = config.pluginmanager.getplugin(_SHARED)
    if plugin is None:
        given: Any = getattr(config, "workerinput", None)
        shares = given is not None and Path(given.get(FOLDER, "/nowhere")).is_dir()
        plugin = SharedPlugin(SharedSetups(Path(given[FOLDER]), given["workerid"]) if shares else SharedSetups.alone())
        config.pluginmanager.register(plugin, _SHARED)
    return plugin.setups
