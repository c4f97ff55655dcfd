"""Every file of a source tree, parsed in two processes, as what is kept of it."""

import ast
import gc
import os
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from staticfire.harness.errors import InputError
from staticfire.harness.scan.base import Limits, Unread
from staticfire.harness.scan.files import find, shown
from staticfire.harness.scan.modules import Unparsable, parse
from staticfire.harness.scan.pool import readers
from staticfire.harness.sync.source.extract import extract
from staticfire.harness.sync.source.facts import Module
from staticfire.harness.sync.source.product import Left, split, wanted

ALONE: Final = 200
"""So few files are read faster here than by processes that have to be started first."""


_Job = tuple[Path, str, str, bool]
"""A file, how it is shown, its dotted name, and whether it is an `__init__.py`."""


class Tree(NamedTuple):
    """A source tree.

    Attributes:
        modules: What is kept of each file.
        unread: Files that could not be parsed, and why.
        files: Shown path -> file.
        left: What is no product, and was not read.
    """

    modules: list[Module]
    unread: list[Unread]
    files: dict[str, Path]
    left: tuple[Left, ...] = ()


def read(root: Path, processes: int) -> Tree:
    """Read every Python file under a folder.

    Args:
        root: A package, or a folder with packages in it.
        processes: How many processes parse.

    Raises:
        InputError: There is no Python in it, or a process that parses died.
    """
    if not root.is_dir():
        raise InputError(f"{root}: an engine's source is a folder, and this is none.")
    root = root.resolve()
    base = _base(root)
    found = find([root])
    files = [path for path in found.files if path.suffix == ".py"]
    if not files:
        raise InputError(f"{root}: no Python file in it.")
    parts = split(files, root)
    modules, unread = _read_all([_job(path, base) for path in parts.product], root, processes)
    names = {_name(path, base)[0]: path for path in parts.left}
    new = modules
    while more := wanted(new, {name: path for name, path in names.items() if path in parts.left}):
        for path in more:
            parts.take(path)
        new, failed = _read([_job(path, base) for path in more])
        modules += new
        unread += failed
    notes = [note for note in found.notes if note.path.endswith(".py")]
    return Tree(
        sorted(modules, key=lambda module: module.path),
        sorted([*notes, *unread], key=lambda entry: entry.path),
        {shown(path): path for path in parts.product},
        parts.left_out(),
    )


def _job(path: Path, base: Path) -> _Job:
    return (path, shown(path), *_name(path, base))


def _read_all(jobs: list[_Job], root: Path, processes: int) -> tuple[list[Module], list[Unread]]:
    if processes == 1 or len(jobs) < ALONE:
        return _read(jobs)
    # by size, so that no process is left with the large ones; dealt out in more parts than there are processes
    jobs.sort(key=lambda job: -job[0].stat().st_size)
    hands = [jobs[start :: processes * 4] for start in range(processes * 4)]
    context = get_context("fork" if hasattr(os, "fork") else None)
    with readers(root, processes, context) as pool:
        parts = list(pool.map(_read, hands))
    return [module for read, _ in parts for module in read], [entry for _, failed in parts for entry in failed]


def _base(root: Path) -> Path:
    """The folder that names of modules are counted from: above the outermost package."""
    while (root / "__init__.py").exists() and root.parent != root:
        root = root.parent
    return root


def _name(path: Path, base: Path) -> tuple[str, bool]:
    # a folder such as `engine-1.2` is one name
    parts = [part.replace(".", "-") for part in path.relative_to(base).with_suffix("").parts]
    package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if package else parts), package


def _read(jobs: Sequence[_Job]) -> tuple[list[Module], list[Unread]]:
    modules, unread = [], []
    collecting = gc.isenabled()
    gc.disable()  # trees are freed one by one, by their reference counts
    try:
        for path, place, name, package in jobs:
            try:
                tree = tree_of(path)
                modules.append(extract(tree, place, name, package))
            except Unparsable as error:
                unread.append(Unread(place, error.line, error.why))
            except OSError as error:
                unread.append(Unread(place, 0, f"cannot be read: {error.strerror}"))
            except RecursionError:
                unread.append(Unread(place, 0, "nested too deeply"))
    finally:
        if collecting:
            gc.enable()
    return modules, unread


def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file.

    Raises:
        Unparsable: It is too large, or no Python.
        OSError: It cannot be read.
    """
    return parse(path.read_bytes(), Limits())[1]
