"""Our own pytest plugin as a source: a suite without a runner of its own gets that one, from a conftest nobody sees.

Only the modules through which its keywords go are read; which engine is under test is decided when the suite runs.
"""

import hashlib
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "plugin"
ENTRY: Final = FOLDER / "entry.py"
"""The outermost conftest of every suite."""

_READ: Final = {
    f"staticfire.harness.plugin.{path.stem}": path for path in (ENTRY, FOLDER / "runner.py", FOLDER / "keywords.py")
}


def module(name: str) -> Path | None:
    """The file of one of the plugin's modules that are read, by its dotted name; None for any other name."""
    return _READ.get(name)


def digest() -> bytes:
    """Of everything here that a scan can read."""
    made = hashlib.sha256()
    for path in _READ.values():
        made.update(path.read_bytes())
    return made.digest()
