"""What takes the system a moment."""

import time

import psutil


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody waits for has as well."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def soon_gone(pid: int) -> bool:
    """Whether a process ends within ten seconds."""
    for _ in range(200):
        if gone(pid):
            return True
        time.sleep(0.05)
    return False
