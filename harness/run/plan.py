"""Which cell a worker takes next. Pure: values in, values out.

Cells of one metamorphic group share a checkpoint, its dtype and its quantization, so a worker that stays within a group
loads and compares less. A worker that has nothing left steals from the group with most left: nobody is idle while a
cell waits.
"""

from collections import deque
from collections.abc import Iterable

from staticfire.harness.matrix.cell import Cell

Key = tuple[str, ...]


class Plan:
    """The cells not yet handed out.

    Args:
        cells: The cells to run, in the order in which a group's cells should be run.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._groups: dict[Key, deque[Cell]] = {}
        self._group_of: dict[int, Key] = {}
        for cell in cells:
            self._groups.setdefault(_key(cell), deque()).append(cell)

    def __len__(self) -> int:
        """Cells not yet handed out."""
        return sum(len(group) for group in self._groups.values())

    def take(self, worker: int) -> Cell | None:
        """Hand out the next cell for `worker`, each cell once; None when none is left."""
        key = self._choose(worker)
        if key is None:
            return None
        self._group_of[worker] = key
        cell = self._groups[key].popleft()
        if not self._groups[key]:
            del self._groups[key]
        return cell

    def give_back(self, cell: Cell) -> None:
        """It was handed out to a worker that was gone already: it is next again."""
        self._groups.setdefault(_key(cell), deque()).appendleft(cell)

    def forget(self, worker: int) -> None:
        """The worker is gone, and with it what it had loaded."""
        self._group_of.pop(worker, None)

    def _choose(self, worker: int) -> Key | None:
        own = self._group_of.get(worker)
        if own in self._groups:
            return own
        if not self._groups:
            return None
        taken = {key for other, key in self._group_of.items() if other != worker}
        free = [key for key in self._groups if key not in taken]
        return max(free or self._groups, key=lambda key: len(self._groups[key]))


def _key(cell: Cell) -> Key:
    return ("refused",) if cell.verdict == "refused" else cell.group
