"""The cut. Pure: items and durations in, shards out; equal inputs in any order give equal shards.

Longest first: the heaviest group goes to the shard with least to do. A group (a model, say) costs time in every shard
that has any of it, so it stays whole unless a cut shortens the longest shard by more than that.
"""

import heapq
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SETUP_SECONDS: Final = 2.0
"""What a group costs in each shard that has some of it: a model to load."""
UNKNOWN_SECONDS: Final = 1.0
"""What an item is taken for when nothing at all has been measured."""
_GAIN: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work that is never cut.

    Attributes:
        id: Names it; unique.
        group: What it shares with others; empty for nothing.
    """

    id: str
    group: str = ""


@dataclass(frozen=True, slots=True)
class Shard:
    """What one job runs.

    Attributes:
        ids: Items, those of a group together, the heaviest group first.
        seconds: Expected, what its groups cost included.
        predicted: How many of its items have never been measured.
    """

    ids: tuple[str, ...]
    seconds: float
    predicted: int


def expected(items: Iterable[Item], durations: Mapping[str, float]) -> dict[str, float]:
    """Item -> seconds: measured, else the median of its group, else of everything measured, else one second."""
    listed = list(items)
    groups: dict[str, list[float]] = defaultdict(list)
    known = [durations[item.id] for item in listed if item.id in durations]
    for item in listed:
        if item.id in durations and item.group:
            groups[item.group].append(durations[item.id])
    every = statistics.median(known) if known else UNKNOWN_SECONDS
    medians = {group: statistics.median(values) for group, values in groups.items()}
    return {item.id: durations.get(item.id, medians.get(item.group, every)) for item in listed}


def split(
    items: Iterable[Item], count: int, durations: Mapping[str, float] | None = None, setup: float = SETUP_SECONDS
) -> tuple[Shard, ...]:
    """Cut into `count` shards: each item in exactly one, and no shard empty while there are items enough.

    Args:
        items: With unique ids, in any order.
        count: At least 1.
        durations: Item -> seconds, as far as known.
        setup: What a group costs in each shard that has some of it.

    Raises:
        ValueError: No shard is asked for, or an id stands twice.
    """
    listed = sorted(items, key=lambda item: item.id)
    durations = durations or {}
    if count < 1:
        raise ValueError(f"{count} shards: at least one is needed")
    if len({item.id for item in listed}) < len(listed):
        raise ValueError("an id stands twice")
    bins = _Bins(count, expected(listed, durations), setup)
    for piece in _pieces(listed, bins.seconds, count, setup):
        bins.add(piece)
    bins.level()
    bins.fill()
    return tuple(bins.shard(number, durations) for number in range(count))


def count_for(
    items: Iterable[Item], minutes: float, most: int, durations: Mapping[str, float], setup: float = SETUP_SECONDS
) -> int:
    """The fewest shards of which none is expected to take longer than `minutes`, or `most` if no number is enough."""
    listed = list(items)
    low, high = 1, max(1, min(most, len(listed)))
    while low < high:
        middle = (low + high) // 2
        longest = max(shard.seconds for shard in split(listed, middle, durations, setup))
        low, high = (low, middle) if longest <= 60 * minutes else (middle + 1, high)
    return low


def _pieces(items: Sequence[Item], seconds: Mapping[str, float], count: int, setup: float) -> list[list[Item]]:
    """Groups, those heavier than a fair share cut; heaviest first."""
    groups: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in items:
        groups[item.group, "" if item.group else item.id].append(item)
    total = sum(seconds.values()) + setup * sum(bool(group) for group, _ in groups)
    fair = max([total / count, *seconds.values()], default=0.0)
    pieces: list[list[Item]] = []
    for members in groups.values():
        pieces += _cut(members, seconds, fair)
    return sorted(pieces, key=lambda piece: (-sum(seconds[item.id] for item in piece), piece[0].id))


def _cut(members: Sequence[Item], seconds: Mapping[str, float], fair: float) -> list[list[Item]]:
    if sum(seconds[item.id] for item in members) <= fair:
        return [list(members)]
    pieces: list[list[Item]] = [[]]
    room = fair
    for item in sorted(members, key=lambda item: (-seconds[item.id], item.id)):
        if seconds[item.id] > room and pieces[-1]:
            pieces.append([])
            room = fair
        pieces[-1].append(item)
        room -= seconds[item.id]
    return pieces


class _Bins:
    """Shards as they are filled."""

    def __init__(self, count: int, seconds: Mapping[str, float], setup: float) -> None:
        self.seconds = seconds
        self._setup = setup
        self._items: list[list[Item]] = [[] for _ in range(count)]
        self._groups: list[dict[str, int]] = [defaultdict(int) for _ in range(count)]
        self._loads = [0.0] * count
        self._heap = [(0.0, number) for number in range(count)]

    def add(self, piece: Sequence[Item]) -> None:
        """Give a piece to the shard with least to do."""
        _, number = heapq.heappop(self._heap)
        for item in piece:
            self._put(item, number)
        heapq.heappush(self._heap, (self._loads[number], number))

    def level(self) -> None:
        """Move single items off the longest shard as long as that shortens it.

        Every move makes the sorted list of loads smaller, so it ends.
        """
        while True:
            numbers = range(len(self._loads))
            longest = max(numbers, key=lambda number: (self._loads[number], -number))
            shortest = min(numbers, key=lambda number: (self._loads[number], number))
            best = min(
                ((max(self._without(item, longest), self._with(item, shortest)), item.id, item)
                 for item in self._items[longest]),
                default=None,
            )  # fmt: skip
            if longest == shortest or best is None or best[0] >= self._loads[longest] - _GAIN:
                return
            self._move(best[2], longest, shortest)

    def fill(self) -> None:
        """Give every empty shard one item of the longest shard that has several."""
        for number, held in enumerate(self._items):
            if held:
                continue
            several = [other for other, items in enumerate(self._items) if len(items) > 1]
            if not several:
                return
            longest = max(several, key=lambda other: (self._loads[other], -other))
            item = max(self._items[longest], key=lambda item: (self.seconds[item.id], item.id))
            self._move(item, longest, number)

    def shard(self, number: int, durations: Mapping[str, float]) -> Shard:
        """One shard as it is now."""
        weight: dict[str, float] = defaultdict(float)
        for item in self._items[number]:
            weight[item.group] += self.seconds[item.id]
        order = sorted(
            self._items[number],
            key=lambda item: (-weight[item.group], item.group, -self.seconds[item.id], item.id),
        )
        return Shard(
            tuple(item.id for item in order),
            round(self._loads[number], 3),
            sum(item.id not in durations for item in order),
        )

    def _without(self, item: Item, number: int) -> float:
        last = item.group and self._groups[number][item.group] == 1
        return self._loads[number] - self.seconds[item.id] - (self._setup if last else 0.0)

    def _with(self, item: Item, number: int) -> float:
        first = item.group and item.group not in self._groups[number]
        return self._loads[number] + self.seconds[item.id] + (self._setup if first else 0.0)

    def _put(self, item: Item, number: int) -> None:
        self._loads[number] = self._with(item, number)
        self._items[number].append(item)
        if item.group:
            self._groups[number][item.group] += 1

    def _move(self, item: Item, source: int, target: int) -> None:
        self._loads[source] = self._without(item, source)
        self._items[source].remove(item)
        if item.group:
            self._groups[source][item.group] -= 1
            if not self._groups[source][item.group]:
                del self._groups[source][item.group]
        self._put(item, target)
