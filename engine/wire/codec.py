"""Messages to bytes and back. Imports no torch."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

from staticfire.engine.errors import EngineError, WireError
from staticfire.engine.exchange import NewRequest
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.wire.messages import (
    AddedRequest,
    Bound,
    Dead,
    FromCoordinator,
    FromEngine,
    Loads,
    Message,
    ToCoordinator,
    ToEngine,
)

MAX_BYTES = 64 << 20
"""Of one message, either way. Sockets are told as well, so that a larger one is never held in memory."""

T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()
_params_encoder = msgspec.json.Encoder()
_params_decoder = msgspec.json.Decoder(SamplingParams)


def encode(message: Message) -> bytes:
    """Bytes of a message.

    Raises:
        WireError: It is larger than `MAX_BYTES`, or holds what has no bytes: half a surrogate pair, an integer of
            more than 64 bits.
    """
    try:
        data = _encoder.encode(message)
    except (UnicodeEncodeError, OverflowError) as error:
        raise WireError(f"{_name(message)}: cannot be sent: {error}") from error
    if len(data) > MAX_BYTES:
        raise WireError(f"{_name(message)}: {len(data)} bytes, at most {MAX_BYTES} are sent in one message")
    return data


class Decoder(Generic[T]):
    """Reads the messages that one side of a socket may get; anything else is a `WireError`."""

    def __init__(self, kinds: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(kinds)

    def __call__(self, data: bytes) -> T:
        """The message in `data`.

        Raises:
            WireError: It is damaged, too large, or none that is expected here.
        """
        if len(data) > MAX_BYTES:
            raise WireError(f"a message of {len(data)} bytes: at most {MAX_BYTES} are taken")
        try:
            decoded: T = self._decoder.decode(data)
        # Values have their own opinion of what they may hold, and damage reaches them too.
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, TypeError, EngineError) as error:
            raise WireError(f"a message of {len(data)} bytes cannot be read: {error}") from error
        return decoded


to_engine: Decoder[ToEngine] = Decoder(ToEngine)
from_engine: Decoder[FromEngine] = Decoder(FromEngine)
to_coordinator: Decoder[ToCoordinator] = Decoder(ToCoordinator)
from_coordinator: Decoder[FromCoordinator] = Decoder(FromCoordinator)
loads: Decoder[Loads] = Decoder(Loads)
bound: Decoder[Bound | Dead] = Decoder(Bound | Dead)


def only(parts: Sequence[bytes]) -> bytes:
    """The one part of a message.

    Raises:
        WireError: It has none, or several.
    """
    if len(parts) != 1:
        raise WireError(f"a message in {len(parts)} parts: each is sent in one")
    return parts[0]


def pack_request(number: int, request: NewRequest) -> AddedRequest:
    """A request as it travels.

    Raises:
        WireError: Its parameters hold what has no JSON.
    """
    try:
        params = _params_encoder.encode(request.sampling_params)
    except (UnicodeEncodeError, OverflowError, TypeError) as error:
        raise WireError(f"request {request.request_id!r}: cannot be sent: {error}") from error
    return AddedRequest(number, request.request_id, request.prompt_token_ids, params)


def unpack_request(added: AddedRequest) -> NewRequest:
    """The request that travelled.

    Raises:
        WireError: Its parameters are damaged.
    """
    try:
        params = _params_decoder.decode(added.sampling_params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, EngineError) as error:
        raise WireError(f"request {added.request_id!r}: its parameters cannot be read: {error}") from error
    return NewRequest(added.request_id, added.prompt_token_ids, params)


def _name(message: Message) -> str:
    return type(message).__name__
