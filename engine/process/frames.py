"""Whole messages over a stream socket between a parent and its child: length first, then the bytes."""

import select
import socket
import struct
import time

from staticfire.engine.errors import WireError

HEADER = struct.Struct("<Q")
MAX_BYTES = 1 << 30
CHUNK = 1 << 20


class Channel:
    """One end of a socket pair that carries frames, in order, both ways. Either end may be polled by `fileno()`."""

    def __init__(self, end: socket.socket, max_bytes: int = MAX_BYTES) -> None:
        end.setblocking(False)
        self._socket = end
        self._max_bytes = max_bytes

    def fileno(self) -> int:
        """Descriptor: readable when a frame begins to come, or the other end is closed."""
        return self._socket.fileno()

    def send(self, data: bytes, limit_s: float | None = None) -> None:
        """Send one frame.

        Raises:
            WireError: It is larger than the limit.
            TimeoutError: The other end did not take it in time.
            EOFError: The other end is closed.
        """
        if len(data) > self._max_bytes:
            raise WireError(f"a message of {len(data)} bytes: at most {self._max_bytes} go over this channel")
        deadline = _deadline(limit_s)
        rest = memoryview(HEADER.pack(len(data)) + data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, deadline)
            except OSError as error:
                raise EOFError(f"the other end is closed ({error.strerror or error})") from error

    def receive(self, limit_s: float | None = None) -> bytes:
        """Wait for one frame.

        Raises:
            WireError: The other end announces more than the limit.
            TimeoutError: It did not come in time.
            EOFError: The other end is closed.
        """
        deadline = _deadline(limit_s)
        (size,) = HEADER.unpack(self._exactly(HEADER.size, deadline))
        if size > self._max_bytes:
            raise WireError(f"a message of {size} bytes is announced: at most {self._max_bytes} are taken")
        return self._exactly(size, deadline)

    def close(self) -> None:
        """Close this end; a second call does nothing."""
        self._socket.close()

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                data = self._socket.recv(min(size - len(parts), CHUNK))
            except BlockingIOError:
                self._wait(select.POLLIN, deadline)
                continue
            except OSError as error:
                raise EOFError(f"the other end is closed ({error.strerror or error})") from error
            if not data:
                raise EOFError("the other end is closed")
            parts += data
        return bytes(parts)

    def _wait(self, event: int, deadline: float | None) -> None:
        poll = select.poll()
        poll.register(self._socket, event)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        if not poll.poll(None if left is None else 1e3 * left):
            raise TimeoutError("the other end did not answer in time")


def _deadline(limit_s: float | None) -> float | None:
    return None if limit_s is None else time.monotonic() + limit_s
