"""One or more engines in processes of their own, over ZMQ. Imports no torch."""

import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec
import zmq

import staticfire
from staticfire.engine.client.balance import Balancer
from staticfire.engine.client.base import Client
from staticfire.engine.client.coordinator import Coordinator
from staticfire.engine.client.limits import Limits
from staticfire.engine.client.link import Engine, Link, threads_of
from staticfire.engine.client.startup import OnProgress, Startup
from staticfire.engine.config.engine_config import EngineConfig, ResolvedConfig
from staticfire.engine.errors import EngineDeadError, RequestError, WireError
from staticfire.engine.exchange import FinishedRequest, NewRequest
from staticfire.engine.process.child import Child
from staticfire.engine.process.coordinate import Posts
from staticfire.engine.process.serve import Launch
from staticfire.engine.process.sockets import PrivateFolder, make_socket
from staticfire.engine.ready.settle import settle
from staticfire.engine.request import Request
from staticfire.engine.scheduler.admission import Gate, admit
from staticfire.engine.stats import EngineStats
from staticfire.engine.view import View, front_end_views
from staticfire.engine.wire import codec
from staticfire.engine.wire.config import encode_config
from staticfire.engine.wire.faults import to_error
from staticfire.engine.wire.messages import (
    PROTOCOL,
    Abort,
    Add,
    AddedRequest,
    AskViews,
    Dead,
    Failed,
    FromEngine,
    Init,
    Outputs,
    Shutdown,
    Views,
)

ENTRY = "staticfire.engine.process.serve:main"

SLICE_S = 0.2
"""Longest wait of one `step`, so that an interrupt and the other threads get their turn."""


class _Sent(NamedTuple):
    """A request that an engine has."""

    request_id: str
    engine: int


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
        self._lock = threading.RLock()
        self._entry = entry
        self._resources = _Resources(self._limits)
        self._end = weakref.finalize(self, self._resources.end)
        try:
            startup = self._start(resolved, eos_token_ids, on_progress)
            settled = settle(resolved, startup.run())
            self._subscribe(settled.dp_stats_address)
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
        self._number_of: dict[str, int] = {}
        self._finished: list[FinishedRequest] = []
        self._errors: deque[Exception] = deque()
        self._lost: dict[str, EngineDeadError] = {}
        self._stats: dict[int, EngineStats] = {}
        self._views: dict[int, Views] = {}
        self._aborts: deque[tuple[tuple[str, ...], bool]] = deque()
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

    def _start(
        self, resolved: ResolvedConfig, eos_token_ids: Collection[int], on_progress: OnProgress | None
    ) -> Startup:
        parallel, resources = resolved.parallel, self._resources
        external = parallel.data_parallel_external_lb
        ranks = [parallel.data_parallel_rank or 0] if external else list(range(parallel.data_parallel_size))
        folder, belongings = resources.folder, (str(resources.folder.path),)
        link = resources.link = Link(resources.context, folder.address("engines"))
        tcp = f"tcp://{parallel.data_parallel_address}"
        join_address = f"{tcp}:{parallel.data_parallel_rpc_port}" if external else folder.address("join")
        stats_address = f"{tcp}:*" if external else folder.address("stats")
        bystanders: list[Child] = []
        if parallel.data_parallel_size > 1 and ranks[0] == 0:
            posts = Posts(join_address, stats_address, parallel.data_parallel_size)
            resources.coordinator = Coordinator(posts, self._limits, belongings)
            bystanders.append(resources.coordinator.child)
        for index in ranks:
            identity = link.new_identity()
            launch = Launch(link.address, identity, index, self._limits.join_s, parallel.tensor_parallel_size == 1)
            child = Child(
                f"engine core {index}",
                self._entry,
                msgspec.msgpack.encode(launch),
                environment=threads_of(len(ranks)),
                belongings=belongings,
            )
            resources.children.append(child)
            link.adopt(index, identity, child)
        init = Init(
            protocol=PROTOCOL,
            version=staticfire.__version__,
            config=encode_config(resolved),
            eos_token_ids=list(eos_token_ids),
            coordinator=join_address if parallel.data_parallel_size > 1 else None,
        )
        return Startup(link, init, self._limits, bystanders, on_progress)

    def _subscribe(self, address: str | None) -> None:
        if address is not None:
            socket = self._resources.loads = make_socket(self._resources.context, zmq.SUB)
            socket.setsockopt(zmq.SUBSCRIBE, b"")
            socket.connect(address)

    def add(self, requests: Sequence[NewRequest]) -> None:
        """Admit all, or none, by what the engines settled."""
        with self._lock:
            self._pump(0.0)
            admit(requests, self._number_of.keys(), self._check, 0)
            try:
                packed = [codec.pack_request(number, new) for number, new in enumerate(requests, self._numbers)]
                for request in packed:
                    codec.encode(Add([request]))
            except WireError as error:
                raise RequestError(str(error)) from error
            self._refuse_if_all_are_dead()
            self._numbers += len(packed)
            shares: dict[int, list[AddedRequest]] = {}
            own = self._own_load()
            alive = self.link.alive()
            for request in packed:
                engine = self._balancer.choose(alive, own)
                own[engine] = own.get(engine, 0) + 1
                shares.setdefault(engine, []).append(request)
                self._open[request.number] = _Sent(request.request_id, engine)
                self._number_of[request.request_id] = request.number
            now = time.monotonic()
            for engine, share in shares.items():
                if own[engine] == len(share):
                    self.link.engines[engine].heard = now
                self._send_share(engine, share)

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
        self._aborts.append((tuple(request_ids), report))
        self.link.wake()
        if self._lock.acquire(blocking=False):
            try:
                self._send_aborts()
            finally:
                self._lock.release()

    def _send_aborts(self) -> None:
        while self._aborts:
            request_ids, report = self._aborts.popleft()
            shares: dict[int, list[int]] = {}
            for request_id in request_ids:
                number = self._number_of.get(request_id)
                if number is not None:
                    shares.setdefault(self._open[number].engine, []).append(number)
                    if not report:
                        self._close_request(number)
            for engine, numbers in shares.items():
                self.link.send(engine, Abort(numbers, report))

    def has_unfinished(self) -> bool:
        """Whether there is something to wait for or to report."""
        return bool(self._open or self._finished or self._errors)

    def step(self) -> list[FinishedRequest]:
        """Wait a moment for something to end."""
        with self._lock:
            self._send_aborts()
            if not self._finished and not self._errors:
                self._pump(SLICE_S if self._open else 0.0)
                self._send_aborts()
            finished, self._finished = self._finished, []
            if finished:
                return finished
            if self._errors:
                raise self._errors.popleft()
            if self._lost and not self.link.alive():
                lost, self._lost = self._lost, {}
                first = next(iter(lost.values()))
                raise EngineDeadError(str(first), who=first.who, lost=tuple(lost))
            return []

    def take_lost(self) -> dict[str, EngineDeadError]:
        """What died with an engine, while others go on."""
        with self._lock:
            lost, self._lost = self._lost, {}
            return lost

    def stats(self) -> dict[int, EngineStats]:
        """What each engine said last."""
        with self._lock:
            self._pump(0.0)
            return dict(self._stats)

    def dead(self) -> dict[int, str]:
        """Engines that are no more."""
        with self._lock:
            self._pump(0.0)
            engines = self.link.engines.values()
            return {engine.index: engine.why_dead for engine in engines if engine.why_dead is not None}

    def views(self) -> list[View]:
        """Ask every engine that lives."""
        with self._lock:
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
        """End the engines, and leave nothing behind."""
        with self._lock:
            self._end()

    def _pump(self, limit_s: float) -> None:
        """Take in what engines and coordinator say, waiting for it at most that long; look after the silent."""
        if not self._end.alive:
            raise EngineDeadError("the engines were closed")
        loads = self._resources.loads
        for event in self.link.wait(limit_s, () if loads is None else (loads,)):
            if event.message is None:
                self._bury(event.engine, event.why_dead)
            else:
                self._take(event.engine, event.message)
        if loads is not None:
            self._hear_loads(loads)
        self._look_for_the_silent()

    def _take(self, engine: Engine, message: FromEngine) -> None:
        match message:
            case Outputs(finished=finished, stats=stats):
                self._stats[engine.index] = stats
                self._finished += [request for number, request in finished if self._close_request(number)]
            case Failed(fault=fault, numbers=numbers):
                # What was aborted without report may fail unnoticed; what concerns nobody concerns everybody.
                open_ones = [number for number in numbers if self._close_request(number)]
                if open_ones or not numbers:
                    self._errors.append(to_error(fault))
            case Views():
                self._views[engine.index] = message
            case Dead(fault=fault):
                self._bury(engine, f"{engine.child.name} (pid {engine.child.pid}) ended itself: {to_error(fault)}")
            case _:
                name = type(message).__name__
                self._bury(engine, f"{engine.child.name} (pid {engine.child.pid}) sent a {name} out of turn")

    def _close_request(self, number: int) -> bool:
        """Whether it was still open."""
        sent = self._open.pop(number, None)
        if sent is not None:
            del self._number_of[sent.request_id]
        return sent is not None

    def _bury(self, engine: Engine, why: str) -> None:
        """End what is left of an engine; its requests are lost."""
        if engine.why_dead is not None:
            return
        engine.why_dead = why
        engine.child.kill()
        error = EngineDeadError(why, who=engine.child.name)
        for number, sent in list(self._open.items()):
            if sent.engine == engine.index:
                self._close_request(number)
                self._lost[sent.request_id] = error

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


class _Resources:
    """What has to be given back, whatever becomes of the client."""

    def __init__(self, limits: Limits) -> None:
        self._owner = os.getpid()
        self._limits = limits
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.folder = PrivateFolder()
        self.link: Link | None = None
        self.loads: zmq.Socket[bytes] | None = None
        self.coordinator: Coordinator | None = None
        self.children: list[Child] = []
        self.ready = False

    def end(self) -> None:
        """Tell every process to end, see to it, and remove the sockets."""
        if os.getpid() != self._owner:  # a fork has no say
            return
        if self.link is not None and self.ready:
            asked = [self.link.engines[index].child for index in self.link.alive()]
            for index in self.link.alive():
                self.link.send(index, Shutdown())
            deadline = time.monotonic() + self._limits.end_s
            for child in asked:
                child.exit_code(max(0.0, deadline - time.monotonic()))
        for child in [*self.children, *([self.coordinator.child] if self.coordinator is not None else [])]:
            child.stop()
        if self.link is not None:
            self.link.close()
        self.context.destroy(linger=0)
        self.folder.remove()


def _distinct(configs: Sequence[EngineConfig]) -> list[EngineConfig]:
    return [config for number, config in enumerate(configs) if config not in configs[:number]]
