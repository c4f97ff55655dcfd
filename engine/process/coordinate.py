"""The data-parallel coordinator: hears from every engine how loaded it is, and tells every front end."""

import time

import msgspec
import zmq

import staticfire
from staticfire.engine.errors import EngineStartError, WireError
from staticfire.engine.process.frames import Channel
from staticfire.engine.process.sockets import bind, make_socket
from staticfire.engine.wire import codec
from staticfire.engine.wire.faults import to_fault
from staticfire.engine.wire.messages import (
    PROTOCOL,
    Bound,
    Dead,
    FromCoordinator,
    Join,
    Joined,
    Load,
    Loads,
    Refused,
)

PUBLISH_S = 0.1
"""Loads are published at most this often."""


class Posts(msgspec.Struct, frozen=True):
    """Where to listen, and for how many engines.

    Attributes:
        join_address: For engines.
        stats_address: For front ends.
        data_parallel_size: Engines that there are to be.
    """

    join_address: str
    stats_address: str
    data_parallel_size: int


def main(payload: bytes, channel: Channel) -> int:
    """Coordinate until the lifeline ends; the entry of the child process."""
    posts = msgspec.msgpack.decode(payload, type=Posts)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    engines, front_ends = make_socket(context, zmq.ROUTER), make_socket(context, zmq.XPUB)
    try:
        bound = Bound(bind(engines, posts.join_address), bind(front_ends, posts.stats_address))
    except EngineStartError as error:
        channel.send(codec.encode(Dead(to_fault(error))))
        return 1
    channel.send(codec.encode(bound))
    _Coordinator(posts, bound, engines, front_ends).run()
    return 0


class _Coordinator:
    def __init__(self, posts: Posts, bound: Bound, engines: zmq.Socket[bytes], front_ends: zmq.Socket[bytes]) -> None:
        self._size = posts.data_parallel_size
        self._bound = bound
        self._engines = engines
        self._front_ends = front_ends
        self._loads: dict[int, Load] = {}
        self._joined: dict[bytes, int] = {}
        self._changed = False
        self._published = 0.0

    def run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._engines, zmq.POLLIN)
        poller.register(self._front_ends, zmq.POLLIN)
        while True:
            due = max(0.0, self._published + PUBLISH_S - time.monotonic())
            poller.poll(int(1e3 * due) + 1 if self._changed else None)
            self._hear_engines()
            self._hear_subscriptions()
            if self._changed and time.monotonic() >= self._published + PUBLISH_S:
                self._front_ends.send(codec.encode(Loads(self._loads)))
                self._changed, self._published = False, time.monotonic()

    def _hear_engines(self) -> None:
        while True:
            try:
                sender, *parts = self._engines.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            try:
                message = codec.to_coordinator(codec.only(parts))
            except WireError as error:
                self._answer(sender, Refused(str(error)))
                continue
            if isinstance(message, Join):
                self._answer(sender, self._join(sender, message))
            elif self._joined.get(sender) == message.engine_index:
                self._loads[message.engine_index] = message.load
                self._changed = True

    def _join(self, sender: bytes, join: Join) -> FromCoordinator:
        if join.protocol != PROTOCOL:
            return Refused(
                f"it speaks protocol {PROTOCOL} (staticfire {staticfire.__version__}), engine {join.engine_index} "
                f"protocol {join.protocol} (staticfire {join.version})"
            )
        if join.data_parallel_size != self._size or not 0 <= join.engine_index < self._size:
            return Refused(
                f"it was started for data_parallel_size={self._size}, and rank {join.engine_index} of "
                f"{join.data_parallel_size} wants to join"
            )
        # A rank that was started again takes the place of its predecessor.
        self._joined = {known: index for known, index in self._joined.items() if index != join.engine_index}
        self._joined[sender] = join.engine_index
        self._loads[join.engine_index] = Load(0, 0)
        self._changed = True
        return Joined(self._bound.stats_address)

    def _answer(self, receiver: bytes, message: FromCoordinator) -> None:
        try:
            self._engines.send_multipart([receiver, codec.encode(message)], zmq.NOBLOCK)
        except zmq.ZMQError:  # it is gone, or does not listen
            self._joined.pop(receiver, None)

    def _hear_subscriptions(self) -> None:
        """A front end that comes late is told at once."""
        while True:
            try:
                self._front_ends.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._changed = True
