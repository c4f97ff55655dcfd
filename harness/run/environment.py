"""The environment of workers: set before a child imports torch, never in the parent's own."""

from collections.abc import Mapping

from staticfire.engine.process.cores import available_cores

DEFAULT_WORKERS = 2


def default_workers() -> int:
    """Workers when nobody says: two, or one on a single core."""
    return min(DEFAULT_WORKERS, available_cores())


def threads_per_worker(workers: int, cores: int) -> int:
    """Two workers with two threads each on two cores ran twice as long as with one thread each."""
    return max(1, cores // max(1, workers))


def worker_environment(workers: int, base: Mapping[str, str], cores: int | None = None) -> dict[str, str]:
    """Return `base` with everything a worker needs; `base` itself is left alone.

    Args:
        workers: Workers that share the cores.
        base: The parent's environment.
        cores: Cores to share; those available, unless given.
    """
    threads = str(threads_per_worker(workers, available_cores() if cores is None else cores))
    return {
        **base,
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        # idle threads sleep, for another worker wants the core
        "OMP_WAIT_POLICY": "PASSIVE",
        # keeps the folder that happens to be current, with its `kernels/`, off sys.path
        "PYTHONSAFEPATH": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
