"""Every message survives the wire; nothing that is no message does, and it does no harm."""

import contextlib
import os
from types import UnionType
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from staticfire.engine.errors import CheckpointError, EngineError, EngineStartError, RequestError, WireError
from staticfire.engine.exchange import NewRequest
from staticfire.engine.ready.response import ReadyResponse
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.wire import codec
from staticfire.engine.wire.faults import KINDS, to_error, to_fault
from staticfire.engine.wire.messages import (
    Add,
    Bound,
    Dead,
    Fault,
    FromCoordinator,
    FromEngine,
    Hello,
    Loads,
    Message,
    Outputs,
    Ready,
    ToCoordinator,
    ToEngine,
)

DECODERS: list[tuple[Any, codec.Decoder[Any]]] = [
    (ToEngine, codec.to_engine),
    (FromEngine, codec.from_engine),
    (ToCoordinator, codec.to_coordinator),
    (FromCoordinator, codec.from_coordinator),
    (Loads, codec.loads),
    (Bound | Dead, codec.bound),
]


def members(kinds: Any) -> tuple[type, ...]:
    return get_args(kinds) if isinstance(kinds, UnionType) else (kinds,)


EVERY = [
    pytest.param(kind, decoder, id=f"{kind.__name__}-{number}")
    for number, (kinds, decoder) in enumerate(DECODERS)
    for kind in members(kinds)
]

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
small = st.integers(-(2**63), 2**63 - 1)
finite = st.floats(allow_nan=False)
params = st.builds(
    SamplingParams,
    temperature=st.floats(0, 1e300),
    top_p=st.floats(0, 1, exclude_min=True),
    top_k=st.integers(0),
    max_tokens=st.integers(1),
    stop_token_ids=st.lists(st.integers(), max_size=4).map(tuple),
    seed=st.none() | st.integers(),
    logprobs=st.none() | st.integers(0),
    prompt_logprobs=st.none() | st.integers(0),
    forced_token_ids=st.none() | st.lists(st.integers(), min_size=1, max_size=4).map(tuple),
    priority=st.integers(),
    ignore_eos=st.booleans(),
)
st.register_type_strategy(str, texts)
st.register_type_strategy(int, small)
st.register_type_strategy(float, finite)


def messages(kind: type) -> st.SearchStrategy[Any]:
    if kind is Ready:  # what its fields may hold is the affair of their own tests
        return st.builds(
            Ready, st.builds(ReadyResponse, engine_index=st.integers(0, 2**31), max_model_len=st.integers(1, 9))
        )
    return st.from_type(kind)


@pytest.mark.parametrize(("kind", "decoder"), EVERY)
@given(data=st.data())
@settings(max_examples=30)
def test_round_trip(kind: type, decoder: codec.Decoder[Any], data: st.DataObject):
    message = data.draw(messages(kind))
    assert decoder(codec.encode(message)) == message


def test_every_message_was_tested():
    assert {kind for kinds, _ in DECODERS for kind in members(kinds)} >= set(members(Message))


@given(request_id=texts, tokens=st.lists(small, max_size=5), given_params=params, number=st.integers(0, 2**40))
@example("a", [1], SamplingParams(seed=10**30, max_tokens=10**25), 0)
def test_a_request_travels_with_integers_of_any_size(
    request_id: str, tokens: list[int], given_params: SamplingParams, number: int
):
    request = NewRequest(request_id, tokens, given_params)
    added = codec.to_engine(codec.encode(Add([codec.pack_request(number, request)])))
    assert isinstance(added, Add)
    assert codec.unpack_request(added.requests[0]) == request
    assert added.requests[0].number == number


@pytest.mark.parametrize(("kind", "decoder"), EVERY)
@given(data=st.data())
@settings(max_examples=20)
def test_a_newer_peer_may_say_more(kind: type, decoder: codec.Decoder[Any], data: st.DataObject):
    message = data.draw(messages(kind))
    plain = msgspec.msgpack.decode(codec.encode(message))
    plain["a field of tomorrow"] = {"deep": [1, None]}
    assert decoder(msgspec.msgpack.encode(plain)) == message


@pytest.mark.parametrize(("kind", "decoder"), EVERY)
@given(data=st.data())
@settings(max_examples=20)
def test_whatever_is_cut_short_is_refused(kind: type, decoder: codec.Decoder[Any], data: st.DataObject):
    encoded = codec.encode(data.draw(messages(kind)))
    cut = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(WireError):
        decoder(encoded[:cut])


@pytest.mark.parametrize("decoder", [decoder for _, decoder in DECODERS])
@given(noise=st.binary(max_size=200))
def test_noise_is_a_message_or_an_error_of_ours(decoder: codec.Decoder[Any], noise: bytes):
    with contextlib.suppress(WireError):
        decoder(noise)


@pytest.mark.parametrize("decoder", [decoder for _, decoder in DECODERS])
def test_deep_nesting_and_foreign_messages_are_refused(decoder: codec.Decoder[Any]):
    for data in (
        b"\x91" * 100_000 + b"\xc0",
        b"\x80",
        b"",
        os.urandom(50),
        msgspec.msgpack.encode({"type": "nothing"}),
    ):
        with pytest.raises(WireError):
            decoder(data)


def test_a_hundred_megabytes_are_neither_sent_nor_taken():
    with pytest.raises(WireError, match=r"at most 67108864 are taken"):
        codec.to_engine(bytes(100_000_000))
    with pytest.raises(WireError, match=r"Dead: 100\d+ bytes, at most 67108864 are sent"):
        codec.encode(Dead(Fault("EngineError", "x" * 100_000_000)))


def test_what_has_no_bytes_is_an_error_of_ours():
    with pytest.raises(WireError, match=r"cannot be sent"):
        codec.encode(Dead(Fault("EngineError", "\ud800")))
    with pytest.raises(WireError, match=r"cannot be sent"):
        codec.encode(Add([codec.pack_request(1, NewRequest("a", [2**70], SamplingParams()))]))


def test_damaged_parameters_are_an_error_of_ours():
    for damage in (b"", b"{", b'{"max_tokens": 0}', b'{"temperature": "hot"}', b"[" * 100_000):
        good = codec.pack_request(3, NewRequest("a", [1], SamplingParams()))
        with pytest.raises(WireError, match=r"request 'a': its parameters"):
            codec.unpack_request(msgspec.structs.replace(good, sampling_params=damage))


def test_hello_is_read_from_any_protocol():
    """Its bytes never change: a peer of another protocol must be able to say who it is."""
    data = msgspec.msgpack.encode(
        {"type": "hello", "protocol": 99, "version": "9.9", "pid": 1, "engine_index": 0, "more": True}
    )
    assert codec.from_engine(data) == Hello(99, "9.9", 1, 0)


@pytest.mark.parametrize("kind", [kind for name, kind in KINDS.items()])
def test_our_errors_come_back_as_what_they_were(kind: type[Exception]):
    error = to_error(to_fault(kind("a\nb")))
    assert type(error) is kind
    assert str(error) == "a\nb"


@pytest.mark.parametrize(("fallback", "kind"), [(EngineError, EngineError), (EngineStartError, EngineStartError)])
def test_other_errors_come_back_as_ours_with_their_kind_and_trace(fallback: type[Exception], kind: type[Exception]):
    try:
        raise KeyError("missing")  # noqa: TRY301
    except KeyError as caught:
        error = to_error(to_fault(caught), fallback)
    assert type(error) is kind
    assert str(error) == "KeyError: 'missing'"
    assert any("test_messages.py" in note for note in error.__notes__)


def test_an_error_with_half_a_surrogate_pair_can_be_sent():
    fault = to_fault(RequestError("request '\ud800': refused"))
    assert codec.bound(codec.encode(Dead(fault))) == Dead(Fault("RequestError", "request '\\ud800': refused"))


def test_kinds_are_found_by_name():
    assert type(to_error(Fault("CheckpointError", "x"))) is CheckpointError
    assert type(to_error(Fault("Unheard", "x"))) is EngineError


def test_outputs_carry_floats_exactly():
    from staticfire.engine.exchange import FinishedRequest
    from staticfire.engine.outputs import RequestStats
    from staticfire.engine.scheduler.output import TokenLogprobs
    from staticfire.engine.stats import Counters

    entry = TokenLogprobs(3, -0.1, 4, ((4, float("-inf")), (3, 5e-324)))
    finished = FinishedRequest("a", [3], "length", [entry], [None, entry], RequestStats(1, 2, [(0, 5)], 3))
    stats = Counters().snapshot(num_running=1, num_waiting=2, kv_cache_usage=0.1)
    got = codec.from_engine(codec.encode(Outputs([(7, finished)], stats)))
    assert got == Outputs([(7, finished)], stats)
    assert isinstance(got, Outputs)
    logprobs = got.finished[0][1].logprobs
    assert logprobs is not None
    assert isinstance(logprobs[0], TokenLogprobs)
