"""What the benchmarks share: an idle machine, microseconds of CPU, and an engine that is given work."""

import os
import sys
import time
from collections.abc import Callable
from statistics import median

BUSY = 0.5
"""Load a core above which the machine is not idle."""


def busy(load: float, cores: int) -> bool:
    """Tell whether a one-minute load average leaves no room for a measurement."""
    return load > BUSY * cores


def refuses(*, force: bool) -> bool:
    """Say on standard error that the machine is busy, unless `force`; whether that was said."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if force or not busy(load, cores):
        return False
    print(f"the machine is busy (load {load:.1f} on {cores} cores): numbers would be noise", file=sys.stderr)
    return True


def microseconds(call: Callable[[], object], rounds: int, calls: int) -> float:
    """Median over rounds of the CPU time of one call."""
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        for _ in range(calls):
            call()
        times.append((time.process_time_ns() - start) / calls / 1000)
    return median(times)


def unit() -> int:
    """A fixed piece of plain Python, to compare machines by."""
    return sum(i * i for i in range(200))
