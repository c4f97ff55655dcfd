"""Which cell a worker takes next. Pure: values in, values out.

Cells of one metamorphic group share a checkpoint, its dtype and its quantization, so a worker that stays within a group
loads and compares less. A worker that has nothing left steals from the group with most left: nobody is idle while a
cell waits.

A worker belongs to one pool and takes cells of that pool only, for what makes a pool is fixed when a process starts.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable

from staticfire.harness.matrix.cell import Cell

Key = tuple[str, ...]


def one_pool(cell: Cell) -> str:  # noqa: ARG001 - one signature for all
    """Put every cell into the same pool."""
    return ""


class Plan:
    """The cells not yet handed out.

    Args:
        cells: The cells to run, in the order in which a group's cells should be run.
        pool_of: Which pool a cell is for.
    """

    def __init__(self, cells: Iterable[Cell], pool_of: Callable[[Cell], str] = one_pool) -> None:
        self._pool_of = pool_of
        self._groups: dict[Key, deque[Cell]] = {}
        self._group_of: dict[int, Key] = {}
        for cell in cells:
            self._groups.setdefault(self._key(cell), deque()).append(cell)

    def __len__(self) -> int:
        """Cells not yet handed out."""
        return sum(len(group) for group in self._groups.values())

    def neediest(self, busy: Iterable[str]) -> str | None:
        """The pool that a worker helps most: most cells wait there for each worker; None when no cell waits.

        Args:
            busy: The pool of each worker that there is.
        """
        waiting = Counter({key[0]: 0 for key in self._groups})
        for key, group in self._groups.items():
            waiting[key[0]] += len(group)
        workers = Counter(busy)
        return max(waiting, key=lambda pool: waiting[pool] / (1 + workers[pool]), default=None)

    def take(self, worker: int, pool: str = "") -> Cell | None:
        """Hand out the next cell for `worker` of `pool`, each cell once; None when none is left."""
        key = self._choose(worker, pool)
        if key is None:
            return None
        self._group_of[worker] = key
        cell = self._groups[key].popleft()
        if not self._groups[key]:
            del self._groups[key]
        return cell

    def give_back(self, cell: Cell) -> None:
        """It was handed out to a worker that was gone already: it is next again."""
        self._groups.setdefault(self._key(cell), deque()).appendleft(cell)

    def forget(self, worker: int) -> None:
        """The worker is gone, and with it what it had loaded."""
        self._group_of.pop(worker, None)

    def _choose(self, worker: int, pool: str) -> Key | None:
        own = self._group_of.get(worker)
        if own in self._groups:
            return own
        ours = [key for key in self._groups if key[0] == pool]
        if not ours:
            return None
        taken = {key for other, key in self._group_of.items() if other != worker}
        free = [key for key in ours if key not in taken]
        return max(free or ours, key=lambda key: len(self._groups[key]))

    def _key(self, cell: Cell) -> Key:
        return (self._pool_of(cell), *(("refused",) if cell.verdict == "refused" else cell.group))
