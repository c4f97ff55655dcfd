"""Waiting for processes to be gone."""

import time
from collections.abc import Callable
from pathlib import Path


def processes_of(group: int) -> list[int]:
    """Ids of the processes of a process group that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Wait until something holds; fail if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to hold"
        time.sleep(0.02)
