"""Messages between the runner and a worker: one JSON object a line, in both directions."""

from typing import Any

import msgspec

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.job import JobContext
from staticfire.harness.run.result import Verdict


class Setup(msgspec.Struct, frozen=True, kw_only=True, tag="setup"):
    """First message to a worker."""

    job: str
    context: JobContext


class Execute(msgspec.Struct, frozen=True, kw_only=True, tag="execute"):
    """Judge this cell."""

    cell: Cell


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """The job is imported; cells may come."""

    seconds: float


class Begun(msgspec.Struct, frozen=True, kw_only=True, tag="begun"):
    """The cell has been taken: whatever happens from now on may be its doing."""

    id: str


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The verdict of the cell just executed."""

    id: str
    verdict: Verdict
    seconds: float
    rule: str | None = None
    detail: dict[str, Any] | None = None


class Unusable(msgspec.Struct, frozen=True, kw_only=True, tag="unusable"):
    """The job cannot be imported; the worker ends."""

    message: str


ToWorker = Setup | Execute
FromWorker = Ready | Begun | Done | Unusable

_to_worker = msgspec.json.Decoder(ToWorker)
_from_worker = msgspec.json.Decoder(FromWorker)


def encode(message: ToWorker | FromWorker) -> bytes:
    """One line, newline included."""
    return msgspec.json.encode(message) + b"\n"


def decode_to_worker(line: bytes) -> ToWorker:
    """Read one line that the runner sent.

    Raises:
        msgspec.DecodeError: It is no such message.
    """
    return _to_worker.decode(line)


def decode_from_worker(line: bytes) -> FromWorker:
    """Read one line that a worker sent.

    Raises:
        msgspec.DecodeError: It is no such message.
    """
    return _from_worker.decode(line)
