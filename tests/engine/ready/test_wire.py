"""The ready response on the wire: every field survives, and peers of other versions, or none at all, do no harm."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ready_answers import answer, any_response
from staticfire.engine.errors import WireError
from staticfire.engine.ready.response import MAX_BYTES, TABLE, ReadyResponse, decode, encode

GOLDEN = Path(__file__).parent / "golden"
FIRST = ReadyResponse(
    engine_index=1,
    version="0.1.0",
    dp_stats_address="tcp://127.0.0.1:29551",
    max_model_len=15168,
    num_gpu_blocks=321,
    kv_cache_size_tokens=25400,
    kv_cache_max_concurrency=1.6746,
    block_size=80,
    mamba_block_size=80,
    kernel_block_size=16,
    page_size_bytes=5120,
    mamba_page_size_padded=5120,
    attention_bytes_per_token=64,
    state_bytes=4864,
    num_groups=4,
    dtype="bfloat16",
    cache_dtype="bfloat16",
    mamba_cache_dtype="bfloat16",
    mamba_ssm_cache_dtype="float32",
    mamba_cache_mode="align",
    enable_prefix_caching=True,
    max_num_seqs=256,
    max_num_batched_tokens=4096,
    tensor_parallel_size=2,
    pipeline_parallel_size=1,
    data_parallel_size=2,
    data_parallel_rank=1,
)
"""What `golden/protocol-1.hex` holds, written down by hand."""


@given(response=any_response)
def test_every_field_survives_the_wire(response):
    data = encode(response)
    assert decode(data) == response
    sent = {name for name in TABLE if getattr(response, name) is not UNSET}
    assert msgspec.msgpack.decode(data).keys() == {"engine_index", *sent}


def test_what_the_first_protocol_sent_is_still_read_and_sent():
    golden = bytes.fromhex((GOLDEN / "protocol-1.hex").read_text())
    assert decode(golden) == FIRST
    assert encode(FIRST) == golden


def test_the_golden_message_has_every_field():
    assert all(getattr(FIRST, name) is not UNSET for name in TABLE)


def test_a_newer_peer_says_more():
    data = bytes.fromhex((GOLDEN / "newer.hex").read_text())
    assert {"future_number", "future_map"} <= msgspec.msgpack.decode(data).keys()
    assert decode(data) == FIRST


@pytest.mark.parametrize("name", TABLE)
def test_an_older_peer_says_less(name):
    raw = msgspec.msgpack.decode(encode(FIRST))
    del raw[name]
    older = decode(msgspec.msgpack.encode(raw))
    assert older == msgspec.structs.replace(FIRST, **{name: UNSET})


def test_without_its_index_an_answer_belongs_to_nobody():
    with pytest.raises(WireError, match="engine_index"):
        decode(msgspec.msgpack.encode({"block_size": 16}))


@given(data=st.binary(max_size=200))
def test_garbage_is_an_error_of_the_wire(data):
    try:
        response = decode(data)
    except WireError:
        return
    assert isinstance(response, ReadyResponse)  # {"engine_index": 0} can be drawn


def test_a_truncated_answer_is_refused_wherever_it_ends():
    data = encode(answer())
    for end in range(len(data)):
        with pytest.raises(WireError, match=f"ready response of {end} bytes"):
            decode(data[:end])


@pytest.mark.parametrize("size", [MAX_BYTES + 1, 100 * 2**20])
def test_a_huge_answer_is_refused_unread(size):
    with pytest.raises(WireError, match=f"{size} bytes is refused"):
        decode(bytes(size))


def test_the_largest_answer_is_far_below_the_limit():
    assert len(encode(FIRST)) < MAX_BYTES / 64


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("engine_index", -1),
        ("engine_index", "0"),
        ("block_size", -16),
        ("block_size", 16.0),
        ("block_size", None),
        ("num_gpu_blocks", "many"),
        ("max_model_len", 0),
        ("max_model_len", "auto"),
        ("kv_cache_max_concurrency", float("nan")),
        ("kv_cache_max_concurrency", -1.0),
        ("dtype", "float8"),
        ("mamba_cache_mode", "some"),
        ("enable_prefix_caching", 1),
        ("version", b"\xff"),
    ],
)
def test_values_of_the_wrong_kind_are_refused_by_name(field, value):
    raw = {"engine_index": 0, field: value}
    with pytest.raises(WireError, match=rf"\$\.{field}|{field}"):
        decode(msgspec.msgpack.encode(raw))


def test_a_bottomless_nest_is_refused():
    data = b"\x82" + msgspec.msgpack.encode("engine_index") + b"\x00" + msgspec.msgpack.encode("new") + b"\x91" * 5000
    with pytest.raises(WireError):
        decode(data)
