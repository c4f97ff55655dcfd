"""`@pytest.mark.matrix(...)`: from a marker to the cells it means, each a parameter with the cell's own id."""

import fnmatch
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.matrix import Matrix, load
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.matrix.document import Value, same
from staticfire.harness.matrix.matrix import names as matrix_names
from staticfire.harness.matrix.spelling import spelled
from staticfire.harness.plugin.cells import CELL_PLUGIN, CellPlugin, Source

VERDICTS: Final = ("valid", "refused")
OWN: Final = ("verdict", "words")
GIVEN: Final = ("cell", "cell_runner")
"""Fixtures that a marker fills."""


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Give the test function one `cell` for each cell that its marker selects.

    Raises:
        pytest.UsageError: The marker cannot be read, or selects nothing; the message says where and what is allowed.
    """
    mark = metafunc.definition.get_closest_marker("matrix")
    assert mark is not None
    names = [name for name in GIVEN if name in metafunc.fixturenames]
    if not names:
        if any(own.name == "matrix" for own in metafunc.definition.own_markers):
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: @pytest.mark.matrix needs the argument 'cell' or 'cell_runner'"
            )
        return  # a class or module is marked, and this test is not about cells
    where = metafunc.definition.nodeid
    try:
        source, cells = cells_of(mark, Path(metafunc.definition.path).parent)
    except InputError as error:
        raise pytest.UsageError("\n".join(f"{where}: {line}" for line in str(error).splitlines())) from error
    plugin = metafunc.config.pluginmanager.getplugin(CELL_PLUGIN)
    if plugin is None:
        plugin = CellPlugin(metafunc.config)
        metafunc.config.pluginmanager.register(plugin, CELL_PLUGIN)
    plugin.sources[where] = source
    values = [[cell] * len(names) for cell in cells]
    # by the fixtures, which are of no function's scope: Hypothesis refuses those that are, and a cell does not change
    metafunc.parametrize(names, values, ids=[cell.id for cell in cells], indirect=True, scope="function")


def cells_of(mark: pytest.Mark, folder: Path) -> tuple[Source, tuple[Cell, ...]]:
    """Read a marker.

    Args:
        mark: `matrix(name, verdict=…, words=…, **axes)`.
        folder: The test file's folder; a path is looked for there first.

    Returns:
        Where the cells come from, and the cells, in the matrix's order.

    Raises:
        InputError: All mistakes at once.
    """
    if len(mark.args) != 1 or not isinstance(mark.args[0], str | Path):
        raise InputError(f"matrix takes one matrix, a file or one of: {', '.join(matrix_names())}; got {mark.args!r}")
    matrix, named = _load(str(mark.args[0]), folder)
    wanted = {name: value for name, value in mark.kwargs.items() if name not in OWN}
    faults = _faults(matrix, mark.kwargs, wanted)
    if faults:
        raise InputError("\n".join(f"{matrix.document.where}: {fault}" for fault in faults))
    verdict = mark.kwargs.get("verdict")
    kept = tuple(
        cell
        for cell in matrix.cells()
        if verdict in (None, cell.verdict) and all(meets(cell.axes[name], value) for name, value in wanted.items())
    )
    if not kept:
        asked = ", ".join(f"{name}={value!r}" for name, value in mark.kwargs.items() if name != "words")
        raise InputError(f"{matrix.document.where}: no cell has {asked}; `staticfire matrix {named}` lists the cells")
    axes = {name: tuple(map(spelled, values)) for name, values in matrix.document.axes.items()}
    return Source(matrix.name, named, axes, dict(mark.kwargs.get("words") or {})), kept


@cache
def _loaded(path_or_name: str) -> Matrix:
    """Every test of a run shares the cells of a matrix."""
    return load(path_or_name)


def _load(name: str, folder: Path) -> tuple[Matrix, str]:
    beside = folder / name
    if beside.is_file():
        return _loaded(str(beside)), str(beside)
    return _loaded(name), name


def _faults(matrix: Matrix, given: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    axes = matrix.document.axes
    faults = []
    if given.get("verdict") not in (None, *VERDICTS):
        faults.append(f"verdict={given['verdict']!r}: must be one of {', '.join(VERDICTS)}")
    words = given.get("words")
    if words is not None and not _is_words(words):
        faults.append(f"words={words!r}: must map codes of rules to the engine's words, such as {{'SF101': 'chunked'}}")
    for name, value in wanted.items():
        if name not in axes:
            known = (*axes, *OWN)
            faults.append(f"{name}={value!r}: no such axis.{nearest(name, known)} Axes: {', '.join(axes)}.")
        elif not any(meets(known, value) for known in axes[name]):
            shown = ", ".join(map(spelled, axes[name]))
            near = nearest(str(value), map(spelled, axes[name]))
            faults.append(f"{name}={value!r}: no value of this axis is meant.{near} Values: {shown}.")
    return faults


def _is_words(words: Any) -> bool:
    return isinstance(words, Mapping) and all(isinstance(text, str) for pair in words.items() for text in pair)


def meets(value: Value, wanted: Any) -> bool:
    """Whether an axis value is the one wanted: equal, matched by a pattern, or one of several."""
    if isinstance(wanted, list | tuple | set | frozenset):
        return any(meets(value, one) for one in wanted)
    if isinstance(wanted, str) and not isinstance(value, bool | int | float):
        return fnmatch.fnmatchcase(value, wanted)
    return same(value, wanted) or (isinstance(wanted, str) and fnmatch.fnmatchcase(spelled(value), wanted))
