"""The processes of all ranks, as their executor sees them: started, spoken to, and when one fails, ended together."""

import contextlib
import select
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from staticfire.engine.errors import CheckpointError, EngineDeadError, EngineError, EngineStartError, WireError
from staticfire.engine.executor.base import Phase, Progress
from staticfire.engine.executor.messages import Failed, FromRank, Setup, ToRank, decode, encode
from staticfire.engine.parallel.base import GroupError
from staticfire.engine.process.child import Child
from staticfire.engine.process.folder import PrivateFolder
from staticfire.engine.process.owner import Owner
from staticfire.engine.wire.faults import to_error
from staticfire.engine.wire.messages import Fault

ENTRY: Final = "staticfire.engine.executor.rank:main"
GRACE_S: Final = 1.0
"""When one rank fails, the others notice: how long the executor listens for who failed first."""

LATE_S: Final = 5.0
"""Ranks that wait for another say so when the limit is over; this is how much later the executor gives up."""

LOOK_S: Final = 1.0
"""How often ranks that are silent are looked at."""

Handler = Callable[[int, FromRank], bool]
"""Told what a rank said; returns whether that was all that is expected of it."""


class Doing(NamedTuple):
    """What ranks are at, for the error.

    Attributes:
        what: Such as `computing a step`.
        limit: The setting that limits it, and its value.
    """

    what: str
    limit: str


class Ranks:
    """Child processes that compute one model together, or not at all: when one is lost, all are ended.

    Attributes:
        children: By rank.
        phases: How far each came in its start-up.
        owner: The process that speaks to them.
    """

    def __init__(
        self,
        names: Sequence[str],
        setup: Callable[[int, str], Setup],
        environment: dict[str, str],
        progress: Progress,
        entry: str,
        meeting: PrivateFolder | Path,
    ) -> None:
        """Spawn them.

        Args:
            names: What each is called in messages.
            setup: (rank, rendezvous) -> its first message.
            environment: Variables added to their environments.
            progress: Told of their phases.
            entry: What they run.
            meeting: Where they meet, and nobody else; removed once they have.
        """
        self.owner = Owner()
        self.phases: list[Phase] = []
        self.children: list[Child] = []
        self._progress = progress
        self._error: EngineError | None = None
        self._meeting = meeting
        rendezvous = meeting.path if isinstance(meeting, PrivateFolder) else meeting
        try:
            for rank, name in enumerate(names):
                payload = encode(setup(rank, str(rendezvous / "store")))
                self.children.append(
                    Child(
                        name,
                        entry,
                        payload,
                        environment=environment,
                        belongings=[str(rendezvous)],
                        own_group=False,
                    )
                )
                self.phases.append("spawned")
                progress(rank, self.children[rank].pid, "spawned")
        except BaseException:
            self.kill()
            raise

    def reached(self, rank: int, phase: Phase) -> None:
        """Note that a rank has come so far."""
        self.phases[rank] = phase
        if all(done not in {"spawned", "imported"} for done in self.phases):
            self.part()
        self._progress(rank, self.children[rank].pid, phase)

    def part(self) -> None:
        """Remove the place where the ranks met."""
        if isinstance(self._meeting, PrivateFolder):
            self._meeting.remove()
        else:
            shutil.rmtree(self._meeting, ignore_errors=True)

    def tell(self, message: ToRank, limit_s: float, doing: Doing) -> None:
        """Send every rank the same.

        Raises:
            EngineDeadError: One of them does not listen any more; there are no ranks after that.
        """
        self.refuse_if_dead()
        data = encode(message)
        for rank, child in enumerate(self.children):
            try:
                child.channel.send(data, limit_s)
            except (EOFError, TimeoutError):
                raise self._lost(doing, [], {rank}) from None

    def hear(self, handle: Handler, limit_s: float, doing: Doing) -> None:
        """Listen until every rank has said all that is expected of it.

        Args:
            handle: Told every message but `Failed`.
            limit_s: For all of them.
            doing: What they do meanwhile.

        Raises:
            EngineDeadError: A rank died, failed, or was silent for too long; there are no ranks after that.
        """
        self.refuse_if_dead()
        try:
            self._hear(handle, time.monotonic() + limit_s + LATE_S, doing)
        except EngineError:
            raise
        except BaseException:
            # Some ranks have answered and some not, and nobody will ever know which: they are of no more use.
            self.kill()
            raise

    def _hear(self, handle: Handler, deadline: float, doing: Doing) -> None:
        waiting = {child.channel.fileno(): rank for rank, child in enumerate(self.children)}
        poll = select.poll()
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN)
        while waiting:
            left = deadline - time.monotonic()
            events = poll.poll(1e3 * min(left, LOOK_S)) if left > 0 else []
            if not events and (left <= 0 or self._dead()):
                raise self._lost(doing, [], set(waiting.values()))
            for descriptor, _ in events:
                rank = waiting[descriptor]
                if handle(rank, self._receive(rank, left, set(waiting.values()), doing)):
                    del waiting[descriptor]
                    poll.unregister(descriptor)

    def _receive(self, rank: int, limit_s: float, silent: set[int], doing: Doing) -> FromRank:
        try:
            message: FromRank = decode(self.children[rank].channel.receive(limit_s), FromRank)
        except (EOFError, TimeoutError):
            raise self._lost(doing, [], silent) from None
        except WireError as error:
            raise self._lost(doing, [(rank, Fault("WireError", str(error), ""))], silent) from error
        if isinstance(message, Failed):
            raise self._lost(doing, [(rank, message.fault)], silent - {rank})
        return message

    def look(self) -> None:
        """Find out, without waiting, whether all are alive.

        Raises:
            EngineDeadError: One is not; there are no ranks after that.
        """
        self.refuse_if_dead()
        if self._dead():
            raise self._lost(Doing("between two steps", ""), [], set())

    def refuse_if_dead(self) -> None:
        """Raise what ended the ranks, if they are ended."""
        if self._error is not None:
            raise self._error

    def kill(self) -> None:
        """End all ranks now."""
        self._error = self._error or EngineDeadError("the workers of this engine are ended")
        for child in self.children:
            child.kill()
        self.part()

    def stop(self) -> None:
        """End all ranks as they like it best."""
        self._error = self._error or EngineDeadError("this engine is closed")
        for child in self.children:
            child.stop()
        self.part()

    def _dead(self) -> list[int]:
        return [rank for rank, child in enumerate(self.children) if child.exit_code() is not None]

    def _lost(self, doing: Doing, faults: list[tuple[int, Fault]], silent: set[int]) -> EngineError:
        """End all ranks and say which of them is to blame.

        When one rank dies, the others fail for want of it, and it is a matter of luck who is heard first. So all are
        listened to for a moment, and the one that died by itself is named before one that failed, and that one before
        those that waited for another or were silent.
        """
        heard = {rank for rank, _ in faults}
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            if self._dead() or any(fault.kind != GroupError.__name__ for _, fault in faults):
                break
            for rank in set(range(len(self.children))) - heard:
                with contextlib.suppress(EOFError, TimeoutError, WireError):
                    message = decode(self.children[rank].channel.receive(0.05), FromRank)
                    if isinstance(message, Failed):
                        faults.append((rank, message.fault))
                        heard.add(rank)
        error = self._blame(doing, faults, silent - heard, self._dead())
        self._error = error
        self.kill()
        return error

    def _blame(self, doing: Doing, faults: list[tuple[int, Fault]], silent: set[int], dead: list[int]) -> EngineError:
        starting = any(phase != "ready" for phase in self.phases)
        kind = EngineStartError if starting else EngineDeadError
        own = [(rank, fault) for rank, fault in faults if fault.kind != GroupError.__name__]
        if dead:
            return self._make(kind, dead, "; ".join(self._end_of(rank, doing) for rank in dead))
        if own:
            rank, fault = own[0]
            error = to_error(fault, kind)
            if isinstance(error, EngineError) and type(error) in {EngineError, CheckpointError}:
                return error  # about what the user gave: one process would have said the same
            made = self._make(kind, [rank], f"{self._where(rank, doing)}: {error}")
            for note in getattr(error, "__notes__", ()):
                made.add_note(note)
            return made
        if silent:
            text = "; ".join(
                f"{self._where(rank, doing)}: silent for too long ({doing.limit})" for rank in sorted(silent)
            )
            return self._make(kind, sorted(silent), text)
        text = "; ".join(f"{self._where(rank, doing)}: {fault.message}" for rank, fault in faults)
        return self._make(kind, [rank for rank, _ in faults], text)

    def _end_of(self, rank: int, doing: Doing) -> str:
        child = self.children[rank]
        tail = child.tail()
        return f"{child.describe()}, {self._during(rank, doing)}" + (f"; its last lines:\n{tail}" if tail else "")

    def _where(self, rank: int, doing: Doing) -> str:
        child = self.children[rank]
        return f"{child.name} (pid {child.pid}), {self._during(rank, doing)}"

    def _during(self, rank: int, doing: Doing) -> str:
        phase = self.phases[rank]
        return doing.what if phase == "ready" else f"{doing.what}, after phase {phase!r}"

    def _make(self, kind: type[EngineError], ranks: Sequence[int], text: str) -> EngineError:
        if kind is EngineDeadError:
            return EngineDeadError(text, who=", ".join(self.children[rank].name for rank in ranks))
        return kind(text)
