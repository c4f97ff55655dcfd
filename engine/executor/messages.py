"""What an executor and its ranks say to each other. Imports no torch."""

from typing import Any

import msgspec

from staticfire.engine.errors import EngineError, WireError
from staticfire.engine.executor.base import Phase
from staticfire.engine.scheduler.output import StateCopy, StepOutput
from staticfire.engine.view import Plain
from staticfire.engine.wire.messages import Fault


class Setup(msgspec.Struct, kw_only=True):
    """The first message to a rank.

    Attributes:
        config: The resolved configuration, as `wire.config` writes it; the rank's own copy from now on.
        rank: Its rank.
        size: How many there are.
        rendezvous: The file over which they meet.
        join_limit_s: How long to wait for the others to come.
        step_limit_s: How long to wait for them in a step.
    """

    config: bytes
    rank: int
    size: int
    rendezvous: str
    join_limit_s: float
    step_limit_s: float


class Chunk(msgspec.Struct, array_like=True):
    """A `ScheduledChunk`. `sampling_params` is JSON, and empty where it is what this request had last time."""

    request_id: str
    token_ids: list[int]
    start: int
    block_ids: tuple[list[int], ...]
    state_blocks: tuple[int, ...]
    samples: bool
    sampling_params: bytes
    num_prompt_tokens: int
    hit_tokens: int


class Step(msgspec.Struct, array_like=True, tag=True):
    """A `SchedulerOutput`, to be computed; `number` comes back with the answer."""

    number: int
    step: int
    chunks: tuple[Chunk, ...]
    state_copies: tuple[StateCopy, ...]
    zero_blocks: tuple[int, ...]
    preempted: tuple[str, ...]
    finished: tuple[str, ...]


class Forget(msgspec.Struct, array_like=True, tag=True):
    """`Executor.forget`; not answered."""


class AskView(msgspec.Struct, array_like=True, tag=True):
    """Say what configuration you hold."""


class Reached(msgspec.Struct, array_like=True, tag=True):
    """A phase of the start-up is done; with `aligned` comes the settled configuration."""

    phase: Phase
    config: bytes = b""


class Answer(msgspec.Struct, array_like=True, tag=True):
    """A step is done. Every rank has the same outcome, so only the first one sends it; the others send None."""

    number: int
    output: StepOutput | None = None


class StepFailed(msgspec.Struct, array_like=True, tag=True):
    """A step ended in an error that every rank has met in the same place; all are ready for the next one."""

    number: int
    fault: Fault


class Failed(msgspec.Struct, array_like=True, tag=True):
    """This rank cannot go on."""

    fault: Fault


class Holds(msgspec.Struct, array_like=True, tag=True):
    """The configuration as this rank holds it, flat."""

    fields: dict[str, Plain]


ToRank = Step | Forget | AskView
FromRank = Reached | Answer | StepFailed | Failed | Holds

_encoder = msgspec.msgpack.Encoder()
_decoders: dict[Any, msgspec.msgpack.Decoder[Any]] = {
    kinds: msgspec.msgpack.Decoder(kinds) for kinds in (Setup, ToRank, FromRank)
}


def encode(message: Setup | ToRank | FromRank) -> bytes:
    """Bytes of a message."""
    return _encoder.encode(message)


def decode(data: bytes, kinds: Any) -> Any:
    """The message in `data`, one of `Setup`, `ToRank` or `FromRank`.

    Raises:
        WireError: It is none of them, or damaged.
    """
    try:
        return _decoders[kinds].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError, EngineError) as error:
        raise WireError(f"a message of {len(data)} bytes cannot be read: {error}") from error
