"""How many processors there are to share out."""

import os


def available_cores() -> int:
    """Cores this process may use, which can be fewer than the machine has."""
    try:
        return max(1, len(os.sched_getaffinity(0)))
    except AttributeError:  # not on macOS
        return max(1, os.cpu_count() or 1)
