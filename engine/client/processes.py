"""One or more engines in processes of their own, over ZMQ. Imports no torch."""

import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

import zmq

from staticfire.engine.client.balance import Balancer
from staticfire.engine.client.base import Client
from staticfire.engine.client.coordinator import Coordinator
from staticfire.engine.client.launch import ENTRY, Processes
from staticfire.engine.client.limits import Limits
from staticfire.engine.client.link import Engine, Link
from staticfire.engine.client.startup import OnProgress
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.errors import EngineDeadError, RequestError, WireError
from staticfire.engine.exchange import FinishedRequest, NewRequest
from staticfire.engine.process.owner import OwnedLock
from staticfire.engine.ready.settle import settle
from staticfire.engine.request import Request
from staticfire.engine.scheduler.admission import Gate, admit
from staticfire.engine.stats import EngineStats
from staticfire.engine.view import View, front_end_views
from staticfire.engine.wire import codec
from staticfire.engine.wire.faults import to_error
from staticfire.engine.wire.messages import (
    Abort,
    Add,
    AddedRequest,
    AskViews,
    Dead,
    Failed,
    FromEngine,
    Outputs,
    Views,
)

SLICE_S = 0.2
"""Longest wait of one `step`, so that an interrupt and the other threads get their turn."""


class _Sent(NamedTuple):
    """A request that an engine has."""

    request_id: str
    engine: int


class _Failure(NamedTuple):
    """What an engine refused or failed at; it concerns these requests, or with none of them all."""

    error: Exception
    request_ids: set[str]


class ProcessClient(Client):
    """Spreads requests over its engines, and gathers what they finish.

    `abort`, `stats`, `dead` and `views` may be called from other threads while one is in `step`.
    """

    def __init__(
        self,
        resolved: ResolvedConfig,
        eos_token_ids: Collection[int] = (),
        *,
        limits: Limits | None = None,
        on_progress: OnProgress | None = None,
        entry: str = ENTRY,
    ) -> None:
        """Start the engines and wait until all are ready.

        Args:
            resolved: What every engine is told.
            eos_token_ids: Tokens that end a request.
            limits: How long anything may take.
            on_progress: Told how far each engine is.
            entry: What an engine process runs.

        Raises:
            EngineStartError: A process died, took too long, found its port in use, or speaks another protocol.
            EngineError: What an engine itself says is wrong, such as a `CheckpointError`.
        """
        self._limits = limits or Limits.from_environment()
        self._lock = OwnedLock()
        self._resources = Processes(self._limits)
        self._end = weakref.finalize(self, self._resources.end)
        try:
            startup = self._resources.start(resolved, eos_token_ids, on_progress, entry)
            settled = settle(resolved, startup.run())
            self._resources.subscribe(settled.dp_stats_address)
        except BaseException:
            self._end()
            raise
        self._resources.ready = True
        self.config = settled.config
        self.engine_configs = settled.engines
        self.unreported = settled.unreported
        self.dp_stats_address = settled.dp_stats_address
        self._gates = [Gate(config) for config in _distinct(tuple(settled.engines.values()))]
        self._balancer = Balancer(settled.engines)
        self._numbers = 0
        self._open: dict[int, _Sent] = {}
        self._finished: list[FinishedRequest] = []
        self._errors: deque[_Failure] = deque()
        self._lost: dict[str, EngineDeadError] = {}
        self._stats: dict[int, EngineStats] = {}
        self._views: dict[int, Views] = {}
        self._aborts: deque[tuple[tuple[str, ...], bool]] = deque()
        self._waiter: int | None = None
        self._told_of_coordinator = False
        for engine, message in startup.early:
            self._take(engine, message)

    @property
    def link(self) -> Link:
        """The socket and the engines at its other end."""
        assert self._resources.link is not None
        return self._resources.link

    @property
    def coordinator(self) -> Coordinator | None:
        """The coordinator, if this front end started it."""
        return self._resources.coordinator

    def add(self, requests: Sequence[NewRequest]) -> None:
        """Admit all, or none, by what the engines settled."""
        with self._lock.here():
            self._pump(0.0)
            admit(requests, self._taken(), self._check, 0)
            try:
                packed = [codec.pack_request(number, new) for number, new in enumerate(requests, self._numbers)]
                for request in packed:
                    codec.encode(Add([request]))
            except WireError as error:
                raise RequestError(str(error)) from error
            self._refuse_if_all_are_dead()
            self._numbers += len(packed)
            try:
                self._spread(packed)
            except BaseException:
                self._close_requests([request.number for request in packed])
                raise

    def _spread(self, packed: Sequence[AddedRequest]) -> None:
        shares: dict[int, list[AddedRequest]] = {}
        own = self._own_load()
        alive = self.link.alive()
        for request in packed:
            engine = self._balancer.choose(alive, own)
            own[engine] = own.get(engine, 0) + 1
            shares.setdefault(engine, []).append(request)
            self._open[request.number] = _Sent(request.request_id, engine)
        now = time.monotonic()
        for engine, share in shares.items():
            if own[engine] == len(share):
                self.link.engines[engine].heard = now
            self._send_share(engine, share)

    @property
    def _number_of(self) -> dict[str, int]:
        """The same requests by id. Made of `_open` each time: an interrupt could leave two books in disagreement."""
        return {sent.request_id: number for number, sent in self._open.items()}

    def _taken(self) -> set[str]:
        """Ids of requests that have not ended as far as the caller was told."""
        unread = {done.request_id for done in self._finished}.union(*(failure.request_ids for failure in self._errors))
        return self._number_of.keys() | unread | self._lost.keys()

    def _check(self, request: Request) -> None:
        """Every engine must be able to take it: which one gets it is not known before."""
        for gate in self._gates:
            gate.check(request)

    def _send_share(self, engine: int, share: list[AddedRequest]) -> None:
        """In as many messages as their size takes; each request alone is known to fit one."""
        try:
            data = codec.encode(Add(share))
        except WireError:
            middle = len(share) // 2
            self._send_share(engine, share[:middle])
            self._send_share(engine, share[middle:])
        else:
            self.link.send_encoded(engine, data)

    def _own_load(self) -> dict[int, int]:
        load: dict[int, int] = {}
        for sent in self._open.values():
            load[sent.engine] = load.get(sent.engine, 0) + 1
        return load

    def abort(self, request_ids: Collection[str], *, report: bool = True) -> None:
        """End requests now; from another thread, after the wait that `step` is in."""
        self._lock.owner.insist()
        self._aborts.append((tuple(request_ids), report))
        self.link.wake()
        # Another thread that waits with the lock has been woken, and sends them. Nobody else holds it for long.
        if self._waiter in (None, threading.get_ident()):
            with self._lock.here():
                self._send_aborts()

    def _send_aborts(self) -> None:
        while self._aborts:
            # It leaves the queue once it is done: an interrupt may come before that, and doing it twice is harmless.
            first = request_ids, report = self._aborts[0]
            number_of = self._number_of
            numbers = [number_of[name] for name in request_ids if name in number_of]
            if report:
                self._send_abort(numbers, report=True)
            else:
                self._close_requests(numbers)
                self._drop_unread(set(request_ids))
            if self._aborts and self._aborts[0] is first:
                self._aborts.popleft()

    def _send_abort(self, numbers: Sequence[int], *, report: bool) -> None:
        shares: dict[int, list[int]] = {}
        for number in numbers:
            shares.setdefault(self._open[number].engine, []).append(number)
        for engine, share in shares.items():
            self.link.send(engine, Abort(share, report))

    def _close_requests(self, numbers: Sequence[int]) -> None:
        """Want nothing more of these requests."""
        known = [number for number in numbers if number in self._open]
        self._send_abort(known, report=False)
        for number in known:
            self._close_request(number)

    def _drop_unread(self, request_ids: set[str]) -> None:
        """What came of these requests is not wanted either: their ids may be used again."""
        self._finished = [done for done in self._finished if done.request_id not in request_ids]
        left = [(failure, failure.request_ids - request_ids) for failure in self._errors]
        self._errors = deque(
            failure._replace(request_ids=ids) for failure, ids in left if ids or not failure.request_ids
        )
        self._lost = {name: error for name, error in self._lost.items() if name not in request_ids}

    def has_unfinished(self) -> bool:
        """Whether there is something to wait for or to report."""
        if not self._end.alive:
            return False
        return bool(self._open or self._finished or self._errors or (self._lost and not self.link.alive()))

    def step(self) -> list[FinishedRequest]:
        """Wait a moment for something to end."""
        with self._lock.here():
            self._send_aborts()
            if not self._finished and not self._errors:
                self._pump(SLICE_S if self._open else 0.0)
            finished, self._finished = self._finished, []
            if finished:
                return finished
            if self._errors:
                raise self._errors.popleft().error
            if self._lost and not self.link.alive():
                lost, self._lost = self._lost, {}
                first = next(iter(lost.values()))
                raise EngineDeadError(str(first), who=first.who, lost=tuple(lost))
            return []

    def take_lost(self) -> dict[str, EngineDeadError]:
        """What died with an engine, while others go on."""
        with self._lock.here():
            lost, self._lost = self._lost, {}
            return lost

    def stats(self) -> dict[int, EngineStats]:
        """What each engine said last."""
        with self._lock.here():
            self._pump(0.0)
            return dict(self._stats)

    def dead(self) -> dict[int, str]:
        """Engines that are no more."""
        with self._lock.here():
            self._pump(0.0)
            engines = self.link.engines.values()
            return {engine.index: engine.why_dead for engine in engines if engine.why_dead is not None}

    def views(self) -> list[View]:
        """Ask every engine that lives."""
        with self._lock.here():
            self._pump(0.0)
            self._refuse_if_all_are_dead()
            self._numbers += 1
            number = self._numbers
            asked = self.link.alive()
            for engine in asked:
                self.link.send(engine, AskViews(number))
            deadline = time.monotonic() + self._limits.silence_s
            while missing := [engine for engine in asked if not self._answered(engine, number)]:
                fallen = [engine for engine in missing if engine not in self.link.alive()]
                if fallen:
                    raise EngineDeadError(self.link.engines[fallen[0]].why_dead or "", who=f"engine core {fallen[0]}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise EngineDeadError(
                        f"engine core {missing[0]} did not tell its configuration within {self._limits.silence_s:g} s",
                        who=f"engine core {missing[0]}",
                    )
                self._pump(min(left, SLICE_S))
            views = front_end_views(self.config, self.engine_configs)
            return [*views, *(view for engine in asked for view in self._views[engine].views)]

    def _answered(self, engine: int, number: int) -> bool:
        return engine in self._views and self._views[engine].number == number

    def close(self) -> None:
        """End the engines, and leave nothing behind; in a fork, do nothing."""
        if self._lock.owner.is_here():
            with self._lock.here():
                self._end()

    def _pump(self, limit_s: float) -> None:
        """Take in what engines and coordinator say, waiting for it at most that long; look after the silent."""
        if not self._end.alive:
            raise EngineDeadError("the engines were closed")
        loads = self._resources.loads
        try:
            self._waiter = threading.get_ident()
            events = self.link.wait(limit_s, () if loads is None else (loads,))
        finally:
            self._waiter = None
        for event in events:
            if event.message is None:
                self._bury(event.engine, event.why_dead)
            else:
                self._take(event.engine, event.message)
        if loads is not None:
            self._hear_loads(loads)
        self._look_for_the_silent()
        self._send_aborts()

    def _take(self, engine: Engine, message: FromEngine) -> None:
        match message:
            case Outputs(finished=finished, stats=stats):
                self._stats[engine.index] = stats
                self._finished += [request for number, request in finished if self._close_request(number)]
            case Failed(fault=fault, numbers=numbers):
                # What was aborted without report may fail unnoticed; what concerns nobody concerns everybody.
                names = {self._open[number].request_id for number in numbers if number in self._open}
                if names or not numbers:
                    self._errors.append(_Failure(to_error(fault), names))
                for number in numbers:
                    self._close_request(number)
            case Views():
                self._views[engine.index] = message
            case Dead(fault=fault):
                self._bury(engine, f"{engine.child.name} (pid {engine.child.pid}) ended itself: {to_error(fault)}")
            case _:
                name = type(message).__name__
                self._bury(engine, f"{engine.child.name} (pid {engine.child.pid}) sent a {name} out of turn")

    def _close_request(self, number: int) -> bool:
        """Whether it was still open."""
        return self._open.pop(number, None) is not None

    def _bury(self, engine: Engine, why: str) -> None:
        """End what is left of an engine; its requests are lost."""
        if engine.why_dead is not None:
            return
        engine.child.kill()
        error = EngineDeadError(why, who=engine.child.name)
        for number, sent in list(self._open.items()):
            if sent.engine == engine.index:
                self._lost[sent.request_id] = error
                self._close_request(number)
        engine.why_dead = why  # last: after an interrupt its death is heard of again

    def _look_for_the_silent(self) -> None:
        now = time.monotonic()
        for index in self._own_load():
            engine = self.link.engines[index]
            if now - engine.heard > self._limits.silence_s:
                self._bury(
                    engine,
                    f"{engine.child.name} (pid {engine.child.pid}) has requests and said nothing for "
                    f"{self._limits.silence_s:g} s, so it was ended",
                )

    def _hear_loads(self, socket: zmq.Socket[bytes]) -> None:
        while True:
            try:
                data = socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                break
            try:
                self._balancer.hear(codec.loads(data).loads)
            except WireError as error:
                warnings.warn(f"the data-parallel coordinator: {error}", RuntimeWarning, stacklevel=2)
        coordinator = self._resources.coordinator
        if coordinator is not None and not self._told_of_coordinator and coordinator.child.exit_code() is not None:
            self._told_of_coordinator = True
            warnings.warn(
                f"{coordinator.child.describe()}: requests are spread by what this front end knows itself",
                RuntimeWarning,
                stacklevel=2,
            )

    def _refuse_if_all_are_dead(self) -> None:
        if not self.link.alive():
            engines = list(self.link.engines.values())
            raise EngineDeadError(
                "no engine is left: " + "; ".join(engine.why_dead or "" for engine in engines),
                who=engines[-1].child.name,
            )


def _distinct(configs: Sequence[EngineConfig]) -> list[EngineConfig]:
    return [config for number, config in enumerate(configs) if config not in configs[:number]]
