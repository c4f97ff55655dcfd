"""A group of processes that speak gloo over the loopback interface."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from staticfire.engine.parallel.base import GroupError

dist: Any = torch.distributed  # its stubs lag behind what it has

LOOPBACK = "127.0.0.1"
TAG = 0


class GlooGroup:
    """Ranks in processes of one machine.

    Every rank sends its tensor to every other one and adds up what it has, in the order of ranks. For the few and
    small tensors of a decode step that takes half as long as gloo's own all-reduce, whose messages are smaller but
    follow one another; and the order of the sum does not depend on the size of the message.
    """

    def __init__(self, rendezvous: Path, rank: int, size: int, *, join_limit_s: float, step_limit_s: float) -> None:
        """Meet the other ranks.

        Args:
            rendezvous: A file that all ranks name and none has made yet; it may be removed once all have met.
            rank: This one.
            size: All.
            join_limit_s: How long to wait for the others here.
            step_limit_s: The same in every operation.

        Raises:
            GroupError: They did not come.
        """
        self.rank = rank
        self.size = size
        self._limit = timedelta(seconds=step_limit_s)
        join_limit = timedelta(seconds=join_limit_s)
        # The process group itself and not `init_process_group`: that one is global, and engines may share a process.
        # Its options are private names, but there is no other way to keep it on the loopback interface.
        options = dist.ProcessGroupGloo._Options()  # noqa: SLF001
        options._devices = [dist.ProcessGroupGloo.create_device(hostname=LOOPBACK)]  # noqa: SLF001
        options._timeout = join_limit  # noqa: SLF001
        options._threads = size  # noqa: SLF001
        try:
            store = dist.FileStore(str(rendezvous), size)
            store.set_timeout(join_limit)
            self._group = dist.ProcessGroupGloo(store, rank, size, options)
        except RuntimeError as error:
            raise GroupError(f"rank {rank} did not meet the other {size - 1}: {_first_line(error)}") from error

    def all_reduce(self, x: torch.Tensor) -> torch.Tensor:
        """The sum over all ranks; see `Group`."""
        first, *others = self._exchange(x)
        total = first + others[0]
        for other in others[1:]:
            total += other
        return total

    def all_gather(self, x: torch.Tensor) -> torch.Tensor:
        """All ranks' tensors side by side; see `Group`."""
        return torch.cat(self._exchange(x), dim=-1)

    def _exchange(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Every rank's `x`, in the order of ranks."""
        x = x.contiguous()
        parts = [x if rank == self.rank else torch.empty_like(x) for rank in range(self.size)]
        group = self._group
        try:
            works = [group.send([x], rank, TAG) for rank in range(self.size) if rank != self.rank]
            works += [group.recv([part], rank, TAG) for rank, part in enumerate(parts) if rank != self.rank]
            for work in works:
                work.wait(self._limit)
        except RuntimeError as error:
            raise GroupError(f"rank {self.rank} lost the others: {_first_line(error)}") from error
        return parts


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
