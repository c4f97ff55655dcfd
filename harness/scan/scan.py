"""Scan files and folders: find what can hold sites, read it, and put together what was found."""

import atexit
import gc
import hashlib
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from staticfire.harness.scan import documents, files, forms, shell
from staticfire.harness.scan.base import Scan, ScanConfig, Unread
from staticfire.harness.scan.cache import Cache, Entry, Packer, Unpacker
from staticfire.harness.scan.files import KINDS
from staticfire.harness.scan.modules import Sources, Unparsable
from staticfire.harness.scan.pool import readers
from staticfire.harness.scan.python import PythonReader
from staticfire.harness.scan.results import FileResult, merge
from staticfire.harness.scan.served import ConfigFiles
from staticfire.harness.stamps import Stamp, Stamps

_WORTHWHILE = 120
"""Python files for which a second process pays for its start."""
_CHUNK = 48
"""Files of one folder that are handed to a process at a time."""


def scan(paths: Sequence[Path | str], *, config: ScanConfig | None = None) -> Scan:
    """Find every site that constructs an engine, and the configurations it can have.

    Args:
        paths: Files and folders; files below the current directory are named by their path from it, and none twice.
        config: What may be assumed, and the limits.

    Returns:
        Sites in order of path and line. Nothing that is read is imported or run.

    Raises:
        InputError: A path is neither a file nor a folder.
    """
    config = config or ScanConfig()
    found = files.find(paths)
    listing = hashlib.sha256("\n".join(str(file) for file in found.files).encode(errors="surrogatepass")).digest()
    roots = [Path(path).absolute() for path in paths]
    cache = Cache.load(config, roots)
    entries = cache.valid(listing)
    fresh = [file for file in found.files if str(file) not in entries]
    if fresh:
        entries.update(_read(fresh, config, roots))
        cache.save(listing, entries)
    ordered = [entries[str(file)][1] for file in found.files if str(file) in entries]
    counts = Counter(KINDS[file.suffix] for file in found.files)
    unread = [*found.notes, *(note for result in ordered for note in result.unread)]
    return Scan(
        merge(ordered, config.limits), dict(counts), tuple(sorted(unread, key=lambda item: (item.path, item.line)))
    )


def _read(fresh: list[Path], config: ScanConfig, roots: Sequence[Path]) -> dict[str, Entry]:
    if config.processes < 2 or sum(file.suffix == ".py" for file in fresh) < _WORTHWHILE:
        return dict(Reader(config, Path.cwd(), roots).read(fresh))
    found: dict[str, Entry] = {}
    context = multiprocessing.get_context("spawn")
    what = ", ".join(map(str, roots))
    with readers(what, config.processes, context, _start_worker, config, Path.cwd(), roots) as pool:
        for tables, rows in pool.map(_work, _groups(fresh)):
            unpacker = Unpacker(tables)
            found.update((name, (dependencies, unpacker.unpack(packed))) for name, dependencies, packed in rows)
    return found


def _groups(fresh: list[Path]) -> list[list[Path]]:
    """Files that one process reads in a row: of one folder, for these share imports; most bytes first."""
    by_folder: dict[Path, list[Path]] = {}
    for file in fresh:
        by_folder.setdefault(file.parent, []).append(file)
    groups = [files[index : index + _CHUNK] for files in by_folder.values() for index in range(0, len(files), _CHUNK)]
    return sorted(groups, key=lambda group: sum(map(_size, group)), reverse=True)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # gone or unreadable: whoever reads it says so


class Reader:
    """Reads files of every kind.

    Args:
        config: What may be assumed, and the limits.
        root: Locations name files below it by their path from it.
        roots: The paths that are scanned.
    """

    def __init__(self, config: ScanConfig, root: Path, roots: Sequence[Path] = ()) -> None:
        self._config = config
        self._stamps = Stamps()
        self._named = ConfigFiles(roots, root, self._stamps)
        self._sources = Sources(config.limits, root, stamps=self._stamps)
        self._python = PythonReader(config, self._sources)

    def read(self, paths: Iterable[Path]) -> Iterator[tuple[str, Entry]]:
        """Each file's dependencies and result."""
        collecting = gc.isenabled()
        gc.disable()  # trees are freed by hand; collecting would walk them again and again
        try:
            for file in paths:
                self._stamps.of(file)
                dependencies, result = self._file(file)
                yield str(file), ({path: self._stamps.of(path) for path in dependencies}, result)
        finally:
            if collecting:
                gc.enable()

    def _file(self, file: Path) -> tuple[set[Path], FileResult]:
        shown = self._sources.shown(file)
        try:
            if file.stat().st_size > self._config.limits.file_bytes:
                return {file}, _note(shown, 0, f"larger than {self._config.limits.file_bytes:,} bytes")
            data = file.read_bytes()
        except OSError as error:
            return {file}, _note(shown, 0, f"cannot be read: {error.strerror}")
        if file.suffix == ".py":
            return self._module(file, data, shown)
        text = data.decode("utf-8", errors="replace")
        if KINDS[file.suffix] == "shell":
            contributions, notes = shell.read_shell(text, shown, budget=self._config.limits.budget(len(text)))
        else:
            contributions, notes = documents.read_yaml(text, shown, self._config.limits.budget(len(text)))
        result, named = self._named.complete(FileResult(tuple(contributions), (), tuple(notes)), file)
        return {file, *named}, result

    def _module(self, file: Path, data: bytes, shown: str) -> tuple[set[Path], FileResult]:
        if not forms.mentioned(data):
            return {file}, FileResult()
        try:
            module = self._sources.load(file) or self._sources.read(file)
        except Unparsable as error:
            return {file}, _note(shown, error.line, error.why)
        except OSError as error:
            return {file}, _note(shown, 0, f"cannot be read: {error.strerror}")
        result, named = self._named.complete(self._python.read(module, self._config.limits.budget()), file)
        dependencies = self._sources.dependencies(file) | named
        self._sources.release(module)
        return dependencies, result


def _note(path: str, line: int, why: str) -> FileResult:
    return FileResult((), (), (Unread(path, line, why),))


_worker: Reader | None = None


def _start_worker(config: ScanConfig, root: Path, roots: Sequence[Path]) -> None:
    global _worker  # noqa: PLW0603 - a pool hands its processes nothing else
    _worker = Reader(config, root, roots)
    atexit.register(os._exit, 0)  # the system takes back a heap of syntax trees at once, the interpreter one by one


def _work(group: list[Path]) -> tuple[dict[str, list[object]], list[tuple[str, Mapping[Path, Stamp], list[object]]]]:
    assert _worker is not None
    packer = Packer()
    rows = [(name, entry[0], packer.pack(entry[1])) for name, entry in _worker.read(group)]
    return packer.tables, rows


__all__ = ["scan"]
