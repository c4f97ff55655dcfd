"""Timing a call: processor time on the CPU, device events on a GPU; and what a GPU really reaches."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

FLUSH_BYTES = 256 << 20
"""More than any L2 cache holds."""
REPEATS = 30


def cpu_microseconds(call: Callable[[], object], *, budget: float = 0.2) -> float:
    """Time a call.

    Args:
        call: What to run.
        budget: Seconds to spend on it, about.

    Returns:
        The least processor time of one call among 20 repeats, in microseconds.
    """
    call()
    begin = time.process_time()
    call()
    once = max(time.process_time() - begin, 1e-6)
    inner = max(1, int(budget / 20 / once))
    best = torch.inf
    for _ in range(20 if once < budget else 1):
        begin = time.process_time()
        for _ in range(inner):
            call()
        best = min(best, (time.process_time() - begin) / inner)
    return best * 1e6


def gpu_microseconds(call: Callable[[], object], device: torch.device, *, repeats: int = REPEATS) -> float:
    """Time a call on a GPU, with nothing of its inputs in the L2 cache.

    Clearing the cache is queued before the call, so the device is busy while the host prepares the launch.

    Args:
        call: What to run.
        device: Where it runs.
        repeats: Measurements.

    Returns:
        The median time between two events around the call, in microseconds.
    """
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=device)
    for _ in range(3):
        call()
    pairs = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flush.zero_()
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize(device)
    milliseconds: float = statistics.median(begin.elapsed_time(end) for begin, end in pairs)
    return milliseconds * 1e3


@dataclass(frozen=True, slots=True)
class Reached:
    """What a device was measured to do.

    Attributes:
        bandwidth: Bytes a second of a large copy, read and written.
        products: dtype, as costs name it -> operations a second of a large product.
    """

    bandwidth: float
    products: Mapping[str, float]


def reached(
    device: torch.device,
    time_call: Callable[[Callable[[], object]], float],
    *,
    elements: int = 1 << 29,
    side: int = 8192,
) -> Reached:
    """Measure a device.

    Args:
        device: The device.
        time_call: Times a call, in microseconds.
        elements: Bytes of the copy.
        side: Of the square matrices.

    Returns:
        What it reaches.
    """
    source = torch.zeros(elements, dtype=torch.int8, device=device)
    target = torch.empty_like(source)
    bandwidth = 2 * elements / time_call(lambda: target.copy_(source)) * 1e6
    products = {}
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32)):
        a, b = (torch.randn(side, side, device=device, dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        products[name] = 2 * side**3 / time_call(lambda a=a, b=b, out=out: torch.mm(a, b, out=out)) * 1e6  # type: ignore[misc]
    return Reached(bandwidth, products)
