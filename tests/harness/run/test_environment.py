import pytest

from staticfire.engine.process.cores import available_cores
from staticfire.harness.run.environment import (
    default_workers,
    threads_per_worker,
    worker_environment,
)


@pytest.mark.parametrize(
    ("workers", "cores", "threads"), [(1, 1, 1), (2, 2, 1), (1, 2, 2), (2, 8, 4), (3, 8, 2), (16, 2, 1), (0, 2, 2)]
)
def test_workers_share_the_cores(workers, cores, threads):
    assert threads_per_worker(workers, cores) == threads


def test_the_base_is_kept_and_left_alone():
    base = {"HOME": "/h", "OMP_NUM_THREADS": "64", "HF_HUB_OFFLINE": "0"}
    made = worker_environment(2, base, cores=4)
    assert base == {"HOME": "/h", "OMP_NUM_THREADS": "64", "HF_HUB_OFFLINE": "0"}
    assert made["HOME"] == "/h"
    assert made["OMP_NUM_THREADS"] == made["MKL_NUM_THREADS"] == "2"
    assert made["HF_HUB_OFFLINE"] == "1"


def test_defaults_follow_the_machine(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3}, raising=False)
    assert (available_cores(), default_workers()) == (1, 1)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert (available_cores(), default_workers()) == (64, 2)


def test_cores_are_counted_without_affinity_too(monkeypatch):
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert available_cores() == 1
