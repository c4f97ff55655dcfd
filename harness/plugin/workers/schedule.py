"""Schedules that outlive their workers; under `--dist loadgroup` the cells of one model are in one group.

xdist hands a test that killed its worker to one replacement after another, until it gives up on the whole run, and
breaks off where a second worker dies before the first replacement has collected.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler import LoadFileScheduling, LoadGroupScheduling, LoadScopeScheduling

FILE: Final = "groups.json"


class _Surviving(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """What all schedules by scope do when a worker dies."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        self._given: dict[Any, list[str]] = {}

    def remove_node(self, node: Any) -> str | None:
        """Hand on what a worker leaves but for the test it died on, which xdist would run on one after another."""
        units = self.assigned_work.pop(node)
        given = self._given.pop(node, [])
        crashed = next((test for test in given if not units[self._split_scope(test)][test]), None)
        if crashed is None:
            return None
        units[self._split_scope(crashed)][crashed] = True
        for scope, unit in units.items():
            if not all(unit.values()):
                self.workqueue[scope] = _joined(self.workqueue.get(scope, {}), unit)
        for other in self.assigned_work:
            self._reschedule(other)
        return crashed

    def mark_test_pending(self, item: str) -> None:
        """Queue a test once more: pytest-rerunfailures asks for it after a death."""
        self.workqueue.setdefault(self._split_scope(item), {})[item] = False
        for node in self.assigned_work:
            self._reschedule(node)

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """Take in what a worker collected.

        Raises:
            pytest.UsageError: A replacement collected something else than the worker before it.
        """
        if node not in self.assigned_work:
            return  # it came when the run seemed to be over, and was sent away
        super().add_node_collection(node, collection)
        if node not in self.registered_collections:
            other = sorted(set(collection).symmetric_difference(self.collection))
            shown = f": {', '.join(other[:3])}{' …' if len(other) > 3 else ''}" if other else ", in another order"
            raise pytest.UsageError(
                f"worker {node.gateway.id} replaces one that died, and collected other tests{shown}; "
                "--sf-guards ids finds what has another name or order in every process"
            )

    def _reschedule(self, node: Any) -> None:
        """Give work, though not to a replacement that is still collecting.

        A worker begins its last test when it knows of another one, or of the end: one alone would wait for ever.
        """
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def _assign_work_unit(self, node: Any) -> None:
        """Keep what the worker has of the same scope already."""
        scope = next(iter(self.workqueue))
        before = self.assigned_work[node].get(scope, {})
        super()._assign_work_unit(node)
        unit = self.assigned_work[node][scope]
        self._given.setdefault(node, []).extend(test for test, done in unit.items() if not done)
        self.assigned_work[node][scope] = _joined(before, unit)


def _joined(one: dict[str, bool], other: dict[str, bool]) -> dict[str, bool]:
    """Two parts of a scope: test -> whether it is done, which it is not if either part still has it to do."""
    return {test: one.get(test, True) and other.get(test, True) for test in {**one, **other}}


class FileScheduling(_Surviving, LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """`--dist loadfile`."""


class ScopeScheduling(_Surviving):
    """`--dist loadscope`."""


class CellScheduling(_Surviving, LoadGroupScheduling):  # type: ignore[misc]  # xdist has no types
    """`--dist loadgroup`: by the table that the workers wrote when they had collected, and by `xdist_group` marks."""

    def __init__(self, config: pytest.Config, log: Any, folder: Path) -> None:
        super().__init__(config, log)
        self._file = folder / FILE
        self._groups: dict[str, str] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._groups is None:
            self._groups = read(self._file)
        group = self._groups.get(nodeid)
        return super()._split_scope(nodeid) if group is None else group


def make(config: pytest.Config, log: Any, folder: Path) -> Any:
    """The schedule for `--dist`; None where nothing of xdist's needs changing."""
    how = config.getvalue("dist")
    if how == "loadgroup":
        return CellScheduling(config, log, folder)
    named = {"loadfile": FileScheduling, "loadscope": ScopeScheduling}.get(how)
    return None if named is None else named(config, log)


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
