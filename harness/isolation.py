"""Start a Python interpreter so that it imports nothing from the folder that the user stands in.

`python -c` and `python -m` look for every module in the current folder first, and so do the children that
`multiprocessing` spawns. A `csv.py` in a checkout that is only to be read would be run. So:

- An interpreter that has an engine starts in a folder of ours, with `environment()`.
- A process of our own keeps the user's folder, for paths are relative to it, and starts under `safe_path()`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

SAFE_PATH: Final = "PYTHONSAFEPATH"
"""Keeps the current folder off the path (Python 3.11 and later)."""

KEPT: Final[Mapping[str, str]] = {
    "PYTHONPATH": "names folders with packages, often the engine itself; only its absolute entries are kept",
    "PYTHONUSERBASE": "says where the user's own packages lie; only if absolute",
    "PYTHONNOUSERSITE": "leaves the user's own packages out",
    "PYTHONPYCACHEPREFIX": "says where compiled modules are kept; only if absolute",
    "PYTHONDONTWRITEBYTECODE": "keeps a read-only installation as it is",
    "PYTHONUTF8": "decides how files are decoded",
    "PYTHONIOENCODING": "decides how output is encoded",
    "PYTHONHASHSEED": "makes sets iterate in one order",
    "PYTHONFAULTHANDLER": "prints the stacks of a crash",
}
"""Variable of Python that another interpreter may see -> why. No other one is passed on: `PYTHONHOME` is of one
interpreter alone, `PYTHONSTARTUP` and `PYTHONINSPECT` are for people, `PYTHONWARNINGS` and `PYTHONBREAKPOINT` import
what they name."""

_LISTS: Final = frozenset({"PYTHONPATH"})
_FOLDERS: Final = frozenset({"PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"})


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for an interpreter that is not ours.

    Args:
        base: Variables to start from, by default those of this process.
    """
    kept: dict[str, str] = {}
    for name, value in (os.environ if base is None else base).items():
        if not name.startswith("PYTHON"):
            kept[name] = value
        elif name in _LISTS:
            entries = [entry for entry in value.split(os.pathsep) if os.path.isabs(entry)]  # noqa: PTH117 -- text
            if entries:
                kept[name] = os.pathsep.join(entries)
        elif name in KEPT and (name not in _FOLDERS or os.path.isabs(value)):  # noqa: PTH117 -- the same
            kept[name] = value
    return kept | {SAFE_PATH: "1"}


def program(name: str) -> str:
    """Where a program lies, as an absolute path, so that it can be started in another folder.

    Links stay links: the interpreter of a virtual environment is one. A name that is not found stays as it is.

    Args:
        name: A path, or a name on PATH.
    """
    if not name or "\0" in name:
        return name
    found = name if os.sep in name else shutil.which(name)
    return os.path.abspath(found) if found else name  # noqa: PTH100 -- Path.absolute keeps `..`


@contextmanager
def empty_folder() -> Iterator[Path]:
    """Make a folder that holds nothing and that only this user can write to; remove it in the end."""
    with tempfile.TemporaryDirectory(prefix="staticfire-empty-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextmanager
def safe_path() -> Iterator[None]:
    """Let Python processes that start meanwhile look for no module in the current folder.

    For processes whose environment cannot be given, as those of `multiprocessing`.
    """
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(SAFE_PATH, None)
        else:
            os.environ[SAFE_PATH] = before
