"""The front end's socket, and the engine processes at its other end. Imports no torch."""

import contextlib
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import zmq

from staticfire.engine.errors import WireError
from staticfire.engine.process.child import Child
from staticfire.engine.process.cores import available_cores
from staticfire.engine.process.sockets import bind, make_socket
from staticfire.engine.wire import codec
from staticfire.engine.wire.messages import FromEngine, Refused, ToEngine

ENDING_S = 0.5
LAST_LOOKS = 20
LAST_WORDS_MS = 50
"""What a process sent just before its end may still be on the way when the end is known."""


@dataclass(slots=True)
class Engine:
    """One engine process.

    Attributes:
        index: Which of the data-parallel engines.
        child: The process.
        heard: When it last said something.
        said: How far its start has come, in its own words.
        why_dead: How it ended; None while it lives.
    """

    index: int
    child: Child
    heard: float = field(default_factory=time.monotonic)
    said: str = "started"
    why_dead: str | None = None


@dataclass(slots=True)
class Event:
    """What came from an engine: a message, or None and why there will be no more."""

    engine: Engine
    message: FromEngine | None
    why_dead: str = ""


class Link:
    """A bound ROUTER. Peers are known by identities that nobody can guess; others are turned away.

    Attributes:
        address: Where it listens.
        engines: By index.
        turned_away: How many messages came from strangers.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
        self._socket = make_socket(context, zmq.ROUTER)
        self.address = bind(self._socket, address)
        self.engines: dict[int, Engine] = {}
        self.turned_away = 0
        self._by_identity: dict[bytes, Engine] = {}
        self._identities: dict[int, bytes] = {}
        self._cut_off: dict[int, str] = {}
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._wake_in, False)

    @staticmethod
    def new_identity() -> bytes:
        """An identity for one engine; ZMQ keeps those that begin with a zero byte for itself."""
        return b"e" + secrets.token_bytes(16)

    def adopt(self, index: int, identity: bytes, child: Child) -> None:
        """Take an engine in that was told the address and its identity."""
        engine = Engine(index, child)
        self.engines[index] = engine
        self._by_identity[identity] = engine
        self._identities[index] = identity

    def alive(self) -> list[int]:
        """Indices of the engines that live, as far as is known."""
        return [index for index, engine in self.engines.items() if engine.why_dead is None]

    def send(self, engine: int, message: ToEngine) -> None:
        """Send to one engine. One that has just died is not an error here: `wait` tells of it.

        Raises:
            WireError: The message is too large, or has no bytes.
        """
        self.send_encoded(engine, codec.encode(message))

    def send_encoded(self, engine: int, data: bytes) -> None:
        """The same for a message in bytes."""
        try:
            self._socket.send_multipart([self._identities[engine], data], zmq.NOBLOCK)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            child = self.engines[engine].child
            # A process that is being ended loses its connection a moment before it can be waited for.
            if child.exit_code(ENDING_S) is None:
                why = "takes no more messages" if error.errno == zmq.EAGAIN else "has lost its connection"
                self._cut_off[engine] = f"{child.name} (pid {child.pid}) {why}, so it was ended"
                child.kill()

    def wake(self) -> None:
        """Let a `wait` in another thread return."""
        if not self._socket.closed:
            with contextlib.suppress(BlockingIOError):  # it has been woken often enough
                os.write(self._wake_in, b"\0")

    def wait(self, limit_s: float, others: Iterable[zmq.Socket[bytes]] = ()) -> list[Event]:
        """What has come from engines, as soon as something has, at the latest after `limit_s` seconds.

        Args:
            limit_s: How long to wait; 0 only looks.
            others: Sockets whose messages end the wait as well.
        """
        poller = zmq.Poller()
        for source in (self._socket, self._wake_out, *others):
            poller.register(source, zmq.POLLIN)
        living = [engine for engine in self.engines.values() if engine.why_dead is None]
        cut_off = [engine for engine in living if engine.index in self._cut_off]
        by_fd = {engine.child.fileno(): engine for engine in living if engine not in cut_off}
        for descriptor in by_fd:
            poller.register(descriptor, zmq.POLLIN)
        ready = dict(poller.poll(0 if cut_off else int(1e3 * limit_s)))
        if self._wake_out in ready:
            os.read(self._wake_out, 1 << 16)
        ended = [*cut_off, *(by_fd[source] for source in ready if isinstance(source, int) and source in by_fd)]
        events = self._receive()
        for _ in range(LAST_LOOKS if ended else 0):
            if not self._socket.poll(LAST_WORDS_MS):
                break
            events += self._receive()
        broken = {event.engine.index for event in events if event.message is None}
        events += [
            Event(engine, None, self._cut_off.get(engine.index) or describe_end(engine.child))
            for engine in ended
            if engine.index not in broken
        ]
        return events

    def _receive(self) -> list[Event]:
        events: list[Event] = []
        while True:
            try:
                sender, *parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return events
            engine = self._by_identity.get(sender)
            if engine is None:
                self._turn_away(sender)
            elif engine.why_dead is None:
                engine.heard = time.monotonic()
                events.append(_read(engine, parts))

    def _turn_away(self, stranger: bytes) -> None:
        self.turned_away += 1
        answer = codec.encode(Refused("this front end started no such engine"))
        with contextlib.suppress(zmq.ZMQError):  # it did not wait for an answer
            self._socket.send_multipart([stranger, answer], zmq.NOBLOCK)

    def close(self) -> None:
        """Close the socket; the engines are ended by their owner."""
        self._socket.close()
        os.close(self._wake_in)
        os.close(self._wake_out)


def _read(engine: Engine, parts: Sequence[bytes]) -> Event:
    """A message of ours that cannot be read may have been an answer, so its sender is of no more use."""
    try:
        return Event(engine, codec.from_engine(codec.only(parts)))
    except WireError as error:
        child = engine.child
        return Event(engine, None, f"{child.name} (pid {child.pid}) sent what cannot be read: {error}")


def describe_end(child: Child) -> str:
    """Who ended and how, with its last lines if it had any."""
    child.exit_code(1.0)
    tail = child.tail()
    return child.describe() + (f"\n{child.name} printed last:\n{tail}" if tail else "")


def threads_of(processes: int) -> Mapping[str, str]:
    """Environment for processes that share the cores, where the user has not said it."""
    wanted = {"OMP_NUM_THREADS": str(max(1, available_cores() // processes)), "OMP_WAIT_POLICY": "PASSIVE"}
    return {name: value for name, value in wanted.items() if name not in os.environ}
