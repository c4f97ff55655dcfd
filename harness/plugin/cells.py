"""Tests that stand for cells: negative ones for what must be refused, tags, and the command that reproduces a failure.

Registered as soon as a marker gave the first cell; without one none of this exists.
"""

import fnmatch
import unittest
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from staticfire.harness.errors import nearest
from staticfire.harness.matrix.cell import UNSET, Cell
from staticfire.harness.matrix.spelling import spelled
from staticfire.harness.plugin.options import ENGINE
from staticfire.harness.plugin.refusal import Refusal, disagreement, refusal_of
from staticfire.harness.plugin.skips import TypedSkip

CELL_PLUGIN: Final = "staticfire-cells"
COLLECTOR: Final = "buildkite-test-collector"
TAGGED: Final = {
    "model": "model",
    "quantization": "quantization",
    "mamba_cache_mode": "cache_mode",
}
"""Axis -> the tag that carries it."""
REPRODUCE: Final = "reproduce"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the cells of a test come from.

    Attributes:
        matrix: The matrix's name.
        file: The matrix as `staticfire run` takes it.
        axes: Its axes, and the values of each as people type them.
        words: Code of a rule -> pattern of the engine's own words.
    """

    matrix: str
    file: str
    axes: Mapping[str, tuple[str, ...]]
    words: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class CellTest:
    """What is known of one test that stands for a cell.

    Attributes:
        cell: The cell.
        source: Where it comes from.
        settled: The refusal that a fixture met, so that the body is not run.
    """

    cell: Cell
    source: Source
    settled: Refusal | None = None


TEST: Final = pytest.StashKey[CellTest]()


class CellPlugin:
    """Hooks for the tests of cells."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.sources: dict[str, Source] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Note each cell on its test, tag it, and deselect what `--sf-select` leaves out."""
        engine = config.stash[ENGINE]
        tagging = config.pluginmanager.hasplugin(COLLECTOR)
        for item in items:
            test = self._test_of(item)
            if test is None:
                continue
            item.stash[TEST] = test
            for name, value in tags_of(test, engine).items():
                item.user_properties.append((name, value))
                if tagging:
                    item.add_marker(pytest.mark.execution_tag(name, value))
        self._deselect(config, items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A fixture that starts the engine may be what is refused."""
        test = item.stash.get(TEST, None)
        if test is not None:
            test.settled = None  # of an earlier attempt
        try:
            return (yield)
        except Exception as error:
            refusal = refusal_of(error) if test is not None and test.cell.verdict == "refused" else None
            if refusal is None or test is None:
                raise
            test.settled = refusal
            return None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Turn the body of a refused cell into the test that it is refused, and let no body skip itself."""
        test = item.stash.get(TEST, None)
        if test is None:
            return (yield)
        answer = reason = refusal = None
        try:
            answer = yield
        except (pytest.skip.Exception, unittest.SkipTest) as skipped:
            if isinstance(skipped, TypedSkip):
                raise
            reason = str(skipped)
        except Exception as error:
            refusal = refusal_of(error) if test.cell.verdict == "refused" else None
            if refusal is None:
                raise
        # Judged out here, or the report would print what was raised above a second time.
        if refusal is not None:
            _judge(test, refusal)
            return None
        if reason is not None:
            pytest.fail(
                f"{test.cell.id}: the body skipped itself ({reason}); a cell is constrained in the matrix, or "
                "skipped by @pytest.mark.requires with a typed reason",
                pytrace=False,
            )
        if test.cell.verdict == "refused" and test.settled is None:
            pytest.fail(
                f"{test.cell.id}: accepted unexpectedly; the matrix says refused by {', '.join(test.cell.rules)}: "
                f"{test.cell.reason}",
                pytrace=False,
            )
        return answer

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Do not run the body of a test whose fixture was refused: its arguments are not all there."""
        test = pyfuncitem.stash.get(TEST, None)
        if test is None or test.settled is None:
            return None
        _judge(test, test.settled)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say with each failure how to see it again without pytest."""
        report = yield
        test = item.stash.get(TEST, None)
        if test is not None and report.failed:
            report.sections.append((REPRODUCE, reproduce(test)))
        return report

    def _test_of(self, item: pytest.Item) -> CellTest | None:
        callspec = getattr(item, "callspec", None)
        params = {} if callspec is None else callspec.params
        cell = params.get("cell", params.get("cell_runner"))
        if not isinstance(cell, Cell):
            return None
        parent = item.parent.nodeid if item.parent is not None else ""
        source = self.sources.get(f"{parent}::{getattr(item, 'originalname', item.name)}")
        return CellTest(cell, source) if source is not None else None

    def _deselect(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        axes: dict[str, dict[str, None]] = {}
        for source in self.sources.values():
            for axis, values in source.axes.items():
                axes.setdefault(axis, {}).update(dict.fromkeys(values))
        filters = read_filters(config.getoption("sf_select") or (), axes)
        if not filters:
            return
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            test = item.stash.get(TEST, None)
            (kept if test is None or _passes(test.cell, filters) else dropped).append(item)
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:] = kept


def groups(items: Iterable[pytest.Item]) -> dict[str, str]:
    """Test id -> what its cell shares with others: checkpoint, dtype and quantization."""
    tests = ((item.nodeid, item.stash.get(TEST, None)) for item in items)
    return {nodeid: "-".join(test.cell.group) for nodeid, test in tests if test is not None}


def read_filters(entries: Iterable[str], axes: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Read `AXIS=VALUE` options: axis -> patterns, any of which may match.

    Args:
        entries: The options.
        axes: Each axis of the matrices that were collected, with its values.

    Raises:
        pytest.UsageError: All mistakes at once.
    """
    faults: list[str] = []
    found: dict[str, list[str]] = {}
    for entry in entries:
        axis, _, pattern = (part.strip() for part in entry.partition("="))
        if not (axis and pattern):
            faults.append(f"--sf-select {entry}: must be AXIS=VALUE, such as model=jamba*")
        elif axis not in axes:
            faults.append(
                f"--sf-select {entry}: no collected matrix has that axis.{nearest(axis, axes)} "
                f"Axes: {', '.join(sorted(axes))}."
            )
        elif not fnmatch.filter(axes[axis], pattern):
            faults.append(
                f"--sf-select {entry}: no value of that axis is meant.{nearest(pattern, axes[axis])} "
                f"Values: {', '.join(axes[axis])}."
            )
        else:
            found.setdefault(axis, []).append(pattern)
    if faults:
        raise pytest.UsageError("\n".join(faults))
    return found


def tags_of(test: CellTest, engine: str) -> dict[str, str]:
    """What reports and Buildkite know a cell by."""
    axes = {**test.cell.fixed, **test.cell.axes}
    tags = {"matrix": test.source.matrix, "cell": test.cell.id, "engine": engine}
    tags |= {tag: str(axes.get(axis, UNSET)) for axis, tag in TAGGED.items()}
    if test.cell.rules:
        tags["refused_by"] = ",".join(test.cell.rules)
    return tags


def reproduce(test: CellTest) -> str:
    """The command that runs this cell, or explains why it is refused, without pytest."""
    from staticfire.harness.run.record import rerun_command  # noqa: PLC0415 -- only for failures

    return rerun_command(test.source.file, test.cell.id)


def _passes(cell: Cell, filters: Mapping[str, list[str]]) -> bool:
    return all(
        axis not in cell.axes or any(fnmatch.fnmatchcase(spelled(cell.axes[axis]), pattern) for pattern in patterns)
        for axis, patterns in filters.items()
    )


def _judge(test: CellTest, refusal: Refusal) -> None:
    fault = disagreement(refusal, test.cell.rules, test.source.words)
    if fault is not None:
        pytest.fail(f"{test.cell.id}: {fault}", pytrace=False)
