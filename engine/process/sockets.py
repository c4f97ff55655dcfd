"""ZMQ sockets as this engine uses them: bounded messages, no lingering. Imports no torch."""

import zmq

from staticfire.engine.errors import EngineStartError
from staticfire.engine.wire.codec import MAX_BYTES

BOUND = (zmq.ROUTER, zmq.XPUB)
CONNECTED_MAX_BYTES = 1 << 30

HIGH_WATER = 10_000
"""Messages that a socket holds for a peer that does not take them; beyond, sending says so."""


def make_socket(context: zmq.Context[zmq.Socket[bytes]], kind: int) -> zmq.Socket[bytes]:
    """A socket with the limits that all of them have."""
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    # Too large a message costs the connection, and only one that was accepted comes back. A socket that connects
    # takes it, reads its size and refuses it: its peer is one that it chose.
    socket.setsockopt(zmq.MAXMSGSIZE, MAX_BYTES if kind in BOUND else CONNECTED_MAX_BYTES)
    socket.setsockopt(zmq.SNDHWM, HIGH_WATER)
    socket.setsockopt(zmq.RCVHWM, HIGH_WATER)
    if kind == zmq.ROUTER:
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
    return socket


def bind(socket: zmq.Socket[bytes], address: str) -> str:
    """Bind; returns the address to connect to, with the port that was chosen for a `*`.

    Raises:
        EngineStartError: The address is in use or none of this machine's.
    """
    try:
        socket.bind(address)
    except zmq.ZMQError as error:
        raise EngineStartError(f"cannot listen at {address}: {error.strerror}") from error
    return socket.getsockopt_string(zmq.LAST_ENDPOINT)
