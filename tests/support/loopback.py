"""Both ends of the client's protocol in one thread, so that a test decides who does what next.

The front end, the engine's server loop, the core and the scheduler are the real ones; the workers are those of
`toy_core`, and two queues stand in for the sockets. Needs no torch.
"""

import sys
from collections import deque
from collections.abc import Iterable
from typing import Any
from unittest.mock import patch

import zmq

import staticfire
import toy_core
from staticfire.engine.client.inline import InlineClient
from staticfire.engine.client.link import Engine, Event
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.core import EngineCore
from staticfire.engine.errors import EngineDeadError
from staticfire.engine.process import serve
from staticfire.engine.wire import codec
from staticfire.engine.wire.config import encode_config
from staticfire.engine.wire.faults import to_fault
from staticfire.engine.wire.messages import PROTOCOL, Dead, FromEngine, Init, Outputs, Ready, Shutdown, ToEngine

PATIENCE = 2000
"""A request of at most a thousand tokens is heard of in fewer turns."""


class _Socket:
    """The engine's end of the two queues."""

    def __init__(self) -> None:
        self.inbox: deque[bytes] = deque()
        self.outbox: deque[bytes] = deque()

    def setsockopt(self, *_: Any) -> None:
        pass

    def connect(self, _: str) -> None:
        pass

    def send(self, data: bytes) -> None:
        self.outbox.append(data)

    def recv(self, _: int = 0) -> bytes:
        if not self.inbox:
            raise zmq.Again
        return self.inbox.popleft()

    def poll(self, _: int) -> bool:
        return bool(self.inbox)


class _Child:
    """What the front end has of a process."""

    def __init__(self, index: int) -> None:
        self.name, self.pid, self.killed = f"engine core {index}", 1000 + index, False

    def kill(self) -> None:
        self.killed = True


class LoopbackEngine:
    """One engine core with its server, and what the front end knows of it.

    Attributes:
        core: The real core.
        server: The real server.
        crashed: What ended it that no engine ends with on purpose.
    """

    def __init__(self, resolved: ResolvedConfig, index: int) -> None:
        self.socket = _Socket()
        launch = serve.Launch("", b"", index, 1.0, False, "")
        with (
            patch("staticfire.engine.process.serve.make_socket", lambda *_: self.socket),
            patch("staticfire.engine.core.make_executor", toy_core.ToyExecutor),
        ):
            self.server = serve._Server(launch, None)  # type: ignore[arg-type]
            self.socket.inbox.append(codec.encode(Init(PROTOCOL, staticfire.__version__, encode_config(resolved), [])))
            core = self.server._start()
        assert core is not None
        self.core: EngineCore = core
        self.engine = Engine(index, _Child(index))  # type: ignore[arg-type]
        self.ended = False
        self.crashed: BaseException | None = None

    def said(self) -> list[FromEngine]:
        """What it has said since the last time."""
        messages = [codec.from_engine(data) for data in self.socket.outbox]
        self.socket.outbox.clear()
        return messages

    def turn(self) -> None:
        """Let it do what it does between two looks at its socket: take all messages, compute one step."""
        if self.ended or self.engine.why_dead is not None:
            return
        trace = sys.gettrace()
        sys.settrace(None)  # an interrupt of the front end is none of the engine
        try:
            self.ended = not self.server._turn(self.core)
        except EngineDeadError as error:
            self.server._send(Dead(to_fault(error)))
            self.ended = True
        except BaseException as error:
            self.ended, self.crashed = True, error
            raise
        finally:
            sys.settrace(trace)


class LoopbackLink:
    """Stands in for `Link`.

    Attributes:
        runs: Whether the engines go on by themselves while the front end waits.
        waits: How often it has waited in vain, one time after the other.
    """

    runs = False
    waits = 0

    def __init__(self, engines: list[LoopbackEngine]) -> None:
        self._ends = {end.engine.index: end for end in engines}
        self.engines = {end.engine.index: end.engine for end in engines}

    def alive(self) -> list[int]:
        return [index for index, engine in self.engines.items() if engine.why_dead is None]

    def send(self, engine: int, message: ToEngine) -> None:
        self.send_encoded(engine, codec.encode(message))

    def send_encoded(self, engine: int, data: bytes) -> None:
        self._ends[engine].socket.inbox.append(data)

    def wake(self) -> None:
        pass

    def wait(self, _: float, __: Iterable[Any] = ()) -> list[Event]:
        events = []
        for index in self.alive():
            end = self._ends[index]
            if self.runs:
                end.turn()
            events += [Event(end.engine, message) for message in end.said()]
            if end.ended:
                events.append(Event(end.engine, None, f"engine core {index} ended: {end.crashed!r}"))
        self.waits = 0 if events else self.waits + 1
        assert self.waits < PATIENCE, "the front end waits for ever"
        return events


class _Resources:
    """Stands in for `Processes`, and for the start of an engine."""

    def __init__(self, engines: list[LoopbackEngine]) -> None:
        self.link = LoopbackLink(engines)
        self.loads = self.coordinator = None
        self.ready = False
        messages = [(end.engine, message) for end in engines for message in end.said()]
        self._ready = [message.response for _, message in messages if isinstance(message, Ready)]
        self.early = [(engine, message) for engine, message in messages if isinstance(message, Outputs)]

    def start(self, *_: Any) -> "_Resources":
        return self

    def run(self) -> list[Any]:
        return self._ready

    def subscribe(self, _: str | None) -> None:
        pass

    def end(self) -> None:
        for index in self.link.alive():
            self.link.send(index, Shutdown())


def loopback(engines: int = 1, **typed: Any) -> tuple[ProcessClient, list[LoopbackEngine]]:
    """A `ProcessClient` and the engines at the other end of its queues."""
    config = toy_core.resolved(**{"enable_multiprocessing": True, **typed})
    ends = [LoopbackEngine(config, index) for index in range(engines)]
    with patch("staticfire.engine.client.processes.Processes", lambda _: _Resources(ends)):
        return ProcessClient(config), ends


def inline(**typed: Any) -> InlineClient:
    """An `InlineClient` over toy workers."""
    with patch("staticfire.engine.core.make_executor", toy_core.ToyExecutor):
        return InlineClient(toy_core.resolved(**typed))
