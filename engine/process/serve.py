"""The process of an engine core: one thread that takes messages between steps, and waits for them when idle.

torch is imported when the process runs, after it has said hello, and not with this module.
"""

import os
import time
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec
import zmq

import staticfire
from staticfire.engine.errors import EngineDeadError, EngineStartError, RequestError, WireError
from staticfire.engine.exchange import FinishedRequest
from staticfire.engine.process.frames import Channel
from staticfire.engine.process.sockets import make_socket
from staticfire.engine.ready.make import make_ready
from staticfire.engine.wire import codec
from staticfire.engine.wire.config import decode_config
from staticfire.engine.wire.faults import to_fault
from staticfire.engine.wire.messages import (
    PROTOCOL,
    Abort,
    Add,
    AddedRequest,
    AskViews,
    Counts,
    Dead,
    Failed,
    FromEngine,
    Hello,
    Init,
    Join,
    Joined,
    Load,
    Outputs,
    Progress,
    Ready,
    Refused,
    Shutdown,
    ToEngine,
    Views,
)

if TYPE_CHECKING:
    from staticfire.engine.core import EngineCore

REPORT_S = 0.2
"""While it computes, an engine says at least this often how it stands."""

CHECK_S = 1.0
"""While it waits, an engine looks this often after its workers."""

FLUSH_MS = 2_000
"""For the last words of an engine to reach the front end."""


class Launch(msgspec.Struct, frozen=True):
    """What the front end tells a new engine process before any socket is open.

    Attributes:
        address: Where the front end listens.
        identity: By which it knows this engine; hard to guess, so that nobody can pass for one.
        engine_index: Which engine it is to be.
        join_s: How long to wait for the data-parallel coordinator.
        computes: Whether its worker is this process, which then imports torch at once.
        folder: Where its own processes may meet; the front end removes it.
    """

    address: str
    identity: bytes
    engine_index: int
    join_s: float
    computes: bool
    folder: str


def main(payload: bytes, _channel: Channel) -> int:
    """Be an engine core until told to end; the entry of the child process."""
    launch = msgspec.msgpack.decode(payload, type=Launch)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        return _Server(launch, context).run()
    finally:
        context.destroy(linger=FLUSH_MS)


class _Server:
    def __init__(self, launch: Launch, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self._launch = launch
        self._index = launch.engine_index
        self._context = context
        self._socket = make_socket(context, zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, launch.identity)
        self._socket.connect(launch.address)
        self._coordinator: zmq.Socket[bytes] | None = None
        self._told: Load | None = None
        self._reported = 0.0
        self._numbers: dict[str, int] = {}

    def run(self) -> int:
        """Start, serve, end."""
        self._send(Hello(PROTOCOL, staticfire.__version__, os.getpid(), self._index))
        try:
            core = self._start()
        except Exception as error:  # noqa: BLE001 - whatever it is, the front end raises it
            self._send(Dead(to_fault(error)))
            return 1
        if core is None:
            return 1
        try:
            self._serve(core)
        except EngineDeadError as error:
            self._send(Dead(to_fault(error)))
            return 1
        finally:
            core.close()
        return 0

    def _start(self) -> "EngineCore | None":
        # The longest part of a start needs nothing that the front end has to tell, so it does not wait for that.
        from staticfire.engine.core import EngineCore  # noqa: PLC0415 - after the hello

        if self._launch.computes:
            import_module("staticfire.engine.executor.inline")
        self._progress("imported")
        init = self._await_init()
        if init is None:
            return None
        resolved = decode_config(init.config)
        stats_address = None
        if init.coordinator is not None:
            stats_address = self._join(init.coordinator, resolved.parallel.data_parallel_size)
            self._progress("joined the coordinator")
        core = EngineCore(
            resolved,
            init.eos_token_ids,
            engine_index=self._index,
            folder=self._launch.folder,
            progress=lambda rank, pid, phase: self._progress(phase, rank, pid),
        )
        try:
            self._progress("loaded")
            self._report(core, [])
            self._send(Ready(make_ready(core.config, engine_index=self._index, dp_stats_address=stats_address)))
        except BaseException:
            core.close()
            raise
        return core

    def _await_init(self) -> Init | None:
        """None if the front end does not want us. It is not waited for longer than it lives, see the lifeline."""
        while True:
            message = self._read(self._socket.recv())
            if isinstance(message, Init):
                if message.protocol != PROTOCOL:
                    raise EngineStartError(
                        f"the engine speaks protocol {PROTOCOL} (staticfire {staticfire.__version__}), the front end "
                        f"protocol {message.protocol} (staticfire {message.version})"
                    )
                return message
            if isinstance(message, Refused | Shutdown):
                return None

    def _join(self, address: str, size: int) -> str:
        """Meet the coordinator; returns where it publishes.

        Raises:
            EngineStartError: It refuses, or does not answer in time.
        """
        self._coordinator = make_socket(self._context, zmq.DEALER)
        self._coordinator.connect(address)
        self._coordinator.send(codec.encode(Join(PROTOCOL, staticfire.__version__, self._index, size)))
        if not self._coordinator.poll(int(1e3 * self._launch.join_s)):
            raise EngineStartError(
                f"no data-parallel coordinator answers at {address} within {self._launch.join_s:g} s: is the front "
                "end of rank 0 running?"
            )
        answer = codec.from_coordinator(self._coordinator.recv())
        if isinstance(answer, Joined):
            return answer.stats_address
        raise EngineStartError(f"the data-parallel coordinator at {address}: {answer.reason}")

    def _serve(self, core: "EngineCore") -> None:
        while self._turn(core):
            pass

    def _turn(self, core: "EngineCore") -> bool:
        """Take what was asked and compute one step, or wait for something to do; False if it is to end."""
        busy = core.has_unfinished()
        if not busy and not self._socket.poll(int(1e3 * CHECK_S)):
            core.check()
            return True
        if not self._take_messages(core):
            return False
        if core.has_unfinished():
            self._step(core)
        elif busy:
            self._report(core, [])
        return True

    def _take_messages(self, core: "EngineCore") -> bool:
        """Do what was asked meanwhile; False if that was to end."""
        while True:
            try:
                data = self._socket.recv(zmq.NOBLOCK)
            except zmq.Again:
                return True
            message = self._read(data)
            if isinstance(message, Shutdown | Refused):
                return False
            if message is not None:
                self._do(core, message)

    def _do(self, core: "EngineCore", message: ToEngine) -> None:
        match message:
            case Add(requests=requests):
                self._add(core, requests)
            case Abort(numbers=numbers, report=report):
                wanted = set(numbers)
                core.abort([name for name, number in self._numbers.items() if number in wanted], report=report)
                self._numbers = {
                    name: number for name, number in self._numbers.items() if report or number not in wanted
                }
                if not core.has_unfinished():
                    self._report(core, [])
            case AskViews(number=number):
                self._send(Views(number, core.views()))
            case _:
                self._send(Failed(to_fault(WireError(f"a {type(message).__name__} comes out of turn")), []))

    def _add(self, core: "EngineCore", requests: list[AddedRequest]) -> None:
        try:
            core.add([codec.unpack_request(request) for request in requests])
        except (RequestError, WireError) as error:
            self._send(Failed(to_fault(error), [request.number for request in requests]))
            return
        self._numbers |= {request.request_id: request.number for request in requests}
        self._count(core)

    def _step(self, core: "EngineCore") -> None:
        try:
            finished = core.step()
        except EngineDeadError:
            raise
        except Exception as error:  # noqa: BLE001 - the front end raises it; the core goes on without the step
            lost = self._numbers.keys() - core.unfinished()
            self._send(Failed(to_fault(error), [self._numbers.pop(name) for name in sorted(lost)]))
            self._report(core, [])
            return
        if finished or not core.has_unfinished() or time.monotonic() - self._reported >= REPORT_S:
            self._report(core, finished)

    def _report(self, core: "EngineCore", finished: list[FinishedRequest]) -> None:
        self._reported = time.monotonic()
        self._send_outputs([(self._numbers.pop(request.request_id), request) for request in finished], core)
        self._count(core)

    def _send_outputs(self, finished: list[tuple[int, FinishedRequest]], core: "EngineCore") -> None:
        """In as many messages as their size takes."""
        try:
            self._send(Outputs(finished, core.stats()))
        except WireError as error:
            if len(finished) <= 1:
                self._send(Failed(to_fault(error), [number for number, _ in finished]))
                return
            middle = len(finished) // 2
            self._send_outputs(finished[:middle], core)
            self._send_outputs(finished[middle:], core)

    def _count(self, core: "EngineCore") -> None:
        """Tell the coordinator, if that would be news to it; one that does not listen costs nothing."""
        if self._coordinator is None:
            return
        load = Load(core.scheduler.num_running, core.scheduler.num_waiting)
        if load != self._told:
            self._told = load
            try:
                self._coordinator.send(codec.encode(Counts(self._index, load)), zmq.NOBLOCK)
            except zmq.Again:
                self._told = None

    def _progress(self, phase: str, rank: int | None = None, pid: int | None = None) -> None:
        self._send(Progress(phase, rank, os.getpid() if pid is None else pid))

    def _read(self, data: bytes) -> ToEngine | None:
        """The message, or None after saying that it is none."""
        try:
            return codec.to_engine(data)
        except WireError as error:
            self._send(Failed(to_fault(error), []))
            return None

    def _send(self, message: FromEngine) -> None:
        self._socket.send(codec.encode(message))
