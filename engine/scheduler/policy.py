"""Who runs first. A policy is one order over requests: the first is admitted first and preempted last."""

from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

from staticfire.engine.request import Request

Order = tuple[int, int, str]
"""Smaller runs first; the request id makes it total."""


def fcfs(request: Request) -> Order:
    """Order by arrival."""
    return (0, request.arrival, request.request_id)


def priority(request: Request) -> Order:
    """Order by priority (lower first), then by arrival."""
    return (request.sampling_params.priority, request.arrival, request.request_id)


POLICIES: Mapping[str, Callable[[Request], Order]] = {"fcfs": fcfs, "priority": priority}


class WaitingQueue:
    """Requests without blocks, first in order on top.

    Args:
        order: One of `POLICIES`.
    """

    def __init__(self, order: Callable[[Request], Order]) -> None:
        self._order = order
        self._heap: list[tuple[Order, Request]] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, request: Request) -> None:
        """Add a new or a preempted request at its place."""
        heappush(self._heap, (self._order(request), request))

    def first(self) -> Request:
        """Return the request to admit next, leaving it there."""
        return self._heap[0][1]

    def pop(self) -> Request:
        """Remove and return the request to admit next."""
        return heappop(self._heap)[1]

    def remove(self, request: Request) -> None:
        """Remove one request wherever it stands."""
        self._heap = [entry for entry in self._heap if entry[1] is not request]
        heapify(self._heap)

    def requests(self) -> list[Request]:
        """Return all requests, in no order."""
        return [request for _, request in self._heap]
