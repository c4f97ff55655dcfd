"""Ranks as threads: a group whose tensors lie in one memory, for tests of what a rank computes."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from staticfire.engine.parallel.base import Group

T = TypeVar("T")
LIMIT_S = 60.0


class ThreadGroup:
    """One rank; `table` and `barrier` are all ranks'."""

    def __init__(self, rank: int, table: list[torch.Tensor], barrier: threading.Barrier) -> None:
        self.rank = rank
        self.size = barrier.parties
        self.calls = 0
        self._table = table
        self._barrier = barrier

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        parts = self._exchange(x)
        assert {part.shape for part in parts} == {x.shape}
        total = parts[0].clone()
        for part in parts[1:]:
            total += part
        return total

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat(self._exchange(x), dim=-1)

    def _exchange(self, x: torch.Tensor) -> list[torch.Tensor]:
        self.calls += 1
        self._table[self.rank] = x.clone()
        self._barrier.wait(LIMIT_S)
        parts = list(self._table)
        self._barrier.wait(LIMIT_S)
        return parts


def on_ranks(size: int, compute: Callable[[Group], T]) -> list[T]:
    """What `compute` returns on every rank; the first rank's error, should there be one."""
    barrier, table = threading.Barrier(size), [torch.empty(0)] * size

    def rank(number: int) -> T:
        try:
            return compute(ThreadGroup(number, table, barrier))
        except threading.BrokenBarrierError:
            raise
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(rank, number) for number in range(size)]
        errors = [future.exception(LIMIT_S) for future in futures]
    for error in sorted(filter(None, errors), key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    return [future.result() for future in futures]
