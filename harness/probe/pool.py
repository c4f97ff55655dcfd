"""Several engine processes that share a list of questions; one that dies costs its question and is started again."""

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Protocol

# A further process pays for itself only when it has enough to do: an engine takes seconds to import.
_WORTH_QUESTIONS: Final = 64
_WORTH_GROUPS: Final = 6
_PIECE: Final = 32
# A question that takes too long costs its whole limit; the next about the same model is likely to do so as well.
_SLOW_IN_GROUP: Final = 2
_SLOW_IN_A_ROW: Final = 4


class Worker(Protocol):
    """A process that answers."""

    def ask(self, question: Mapping[str, Any], limit: float | None = None) -> dict[str, Any]:
        """Answer one question, or raise and be of no more use; an answer that says `last` is the last one."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


class Pool:
    """Up to `size` processes, started when there is work for them and kept until `close`.

    A process that fails is replaced for the next question. One that cannot even be started is not tried for ever:
    after `patience` failed starts in a row, all that is left gets the reason of the last. Nor is one that takes too
    long: after two such questions about one model the rest about it is not asked, and after four in a row nothing is.
    """

    def __init__(self, start: Callable[[], Worker], died: type[Exception], *, size: int = 2, patience: int = 3) -> None:
        """Start nothing yet.

        Args:
            start: Makes a process.
            died: What a process raises when it gives no answer.
            size: Most processes at a time.
            patience: Failed starts in a row before giving up.
        """
        self._make = start
        self._died = died
        self._size = size
        self._patience = patience
        self._idle: list[Worker] = []
        self._running: set[Worker] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._stopping = False
        self._silent: dict[Hashable, int] = {}  # group -> questions that took too long since the last answer to one
        self._row = 0  # questions that took too long since the last answer to any

    def ask(
        self, questions: Sequence[Mapping[str, Any]], groups: Sequence[Hashable]
    ) -> list[dict[str, Any] | Exception]:
        """Answer all questions.

        Args:
            questions: What to ask.
            groups: Of each question, what it shares with others (its model): a process keeps to a group for a while.

        Returns:
            For each question its answer, or why there is none.
        """
        answers: list[dict[str, Any] | Exception] = [self._died("not asked")] * len(questions)
        self._stopping = False
        pieces = _pieces(groups)
        wanted = min(self._size, len(pieces), _processes(len(questions), len(set(groups))))
        failures: list[BaseException] = []

        def work() -> None:
            try:
                self._work(questions, groups, pieces, answers)
            except BaseException as error:  # noqa: BLE001 -- carried to the caller's thread
                failures.append(error)
                self.stop()

        threads = [threading.Thread(target=work, daemon=True) for _ in range(wanted - 1)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return answers

    def stop(self) -> None:
        """Ask nothing more in the `ask` that is going on; questions on their way are still waited for."""
        self._stopping = True

    def close(self) -> None:
        """End all processes, also those that are being asked."""
        with self._lock:
            self._closed = True
            workers = [*self._idle, *self._running]
            self._idle.clear()
        for worker in workers:
            worker.kill()

    def _work(
        self,
        questions: Sequence[Mapping[str, Any]],
        groups: Sequence[Hashable],
        pieces: deque[list[int]],
        answers: list[dict[str, Any] | Exception],
    ) -> None:
        worker: Worker | None = None
        failures: list[Exception] = []  # of starting a process, in a row
        try:
            while True:
                with self._lock:
                    if not pieces:
                        return
                    piece = pieces.popleft()
                for index in piece:
                    if self._stopping:
                        return
                    if why := self._given_up(groups[index]):
                        answers[index] = self._died(why)
                        continue
                    try:
                        if worker is None:
                            worker = self._take(failures)
                        answers[index] = answer = worker.ask(questions[index])
                        failures.clear()
                        self._note(groups[index], slow=False)
                        if answer.get("last"):
                            self._drop(worker)
                            worker = None
                    except self._died as error:
                        answers[index] = error
                        if worker is not None:
                            self._note(groups[index], slow=bool(getattr(error, "slow", False)))
                        if worker is None and len(failures) < self._patience:
                            failures.append(error)
                        self._drop(worker)
                        worker = None
        finally:
            if worker is not None:
                with self._lock:
                    self._running.discard(worker)
                    self._idle.append(worker)

    def _note(self, group: Hashable, *, slow: bool) -> None:
        with self._lock:
            self._row = self._row + 1 if slow else 0
            if slow:
                self._silent[group] = self._silent.get(group, 0) + 1
            elif group in self._silent and self._silent[group] < _SLOW_IN_GROUP:
                del self._silent[group]

    def _given_up(self, group: Hashable) -> str:
        """Why a question is not asked any more; empty where it is."""
        with self._lock:
            silent, row = self._silent.get(group, 0), self._row
        if row >= _SLOW_IN_A_ROW:
            return f"not asked: the engine took too long over {row} questions in a row"
        return f"not asked: {silent} questions about the same model took too long" if silent >= _SLOW_IN_GROUP else ""

    def _take(self, failures: Sequence[Exception]) -> Worker:
        with self._lock:
            self._check_open()
            if self._idle:
                worker = self._idle.pop()
                self._running.add(worker)
                return worker
        if len(failures) >= self._patience:
            raise self._died(f"the engine could not be started {len(failures)} times in a row: {failures[-1]}")
        worker = self._make()
        try:
            with self._lock:
                self._check_open()
                self._running.add(worker)
        except self._died:
            worker.kill()
            raise
        return worker

    def _check_open(self) -> None:
        if self._closed:
            raise self._died("the probe is closed")

    def _drop(self, worker: Worker | None) -> None:
        if worker is not None:
            with self._lock:
                self._running.discard(worker)
            worker.kill()


def _processes(questions: int, groups: int) -> int:
    return max(1 + questions // _WORTH_QUESTIONS, 1 + groups // _WORTH_GROUPS)


def _pieces(groups: Sequence[Hashable]) -> deque[list[int]]:
    """Indices of the questions, group by group, in pieces that two processes can share; large groups first."""
    members: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    ordered = sorted(members.values(), key=len, reverse=True)
    return deque(piece[start : start + _PIECE] for piece in ordered for start in range(0, len(piece), _PIECE))
