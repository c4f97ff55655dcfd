"""`--dist loadgroup` with the cells of one model in one group, and without a suffix in anybody's test id."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadGroupScheduling

FILE: Final = "groups.json"


class CellScheduling(LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """Groups by the table that the workers wrote when they had collected, and by `xdist_group` marks."""

    def __init__(self, config: pytest.Config, log: Any, folder: Path) -> None:
        super().__init__(config, log)
        self._file = folder / FILE
        self._groups: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._groups is None:
            self._groups = read(self._file)
        group = self._groups.get(nodeid)
        return super()._split_scope(nodeid) if group is None else group

    def remove_node(self, node: Any) -> str | None:
        """Hand on what a worker leaves but for the test it died on, which xdist would run on one after another."""
        units = self.assigned_work.pop(node)
        left = next(((unit, test) for unit in units.values() for test, done in unit.items() if not done), None)
        if left is None:
            return None
        unit, crashed = left
        unit[crashed] = True
        self.workqueue.update({scope: unit for scope, unit in units.items() if not all(unit.values())})
        for other in self.assigned_work:
            self._reschedule(other)
        return str(crashed)


def write(folder: Path, groups: dict[str, str], worker: str) -> None:
    """Leave the table for the controller; every worker writes the same one, whole."""
    scratch = folder / f".{FILE}.{worker}"
    scratch.write_text(json.dumps(groups), encoding="utf-8")
    scratch.replace(folder / FILE)


def read(file: Path) -> dict[str, str]:
    """Test id -> group; empty where no worker wrote one, as on another machine."""
    try:
        found: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
