import struct
from hashlib import blake2b

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.engine.cache.hashing import ROOT_HASH, extend_chain, hash_block, hash_block_size
from staticfire.engine.cache.layout import plan_cache
from toy_engine.factories import toy_config, toy_request

TOKENS = st.lists(st.integers(0, 2**40), max_size=40)


def test_the_bytes_hashed_are_these():
    payload = bytes(16) + struct.pack("<q", 2) + struct.pack("<qq", 7, 300) + b"salt"
    assert hash_block(ROOT_HASH, [7, 300], b"salt") == blake2b(payload, digest_size=16).digest()


def test_hash_is_the_same_in_every_run():
    assert hash_block(ROOT_HASH, [1, 2, 3]).hex() == "26f459ee2900b93a6801f9fcea1b0e7c"


@given(TOKENS, TOKENS, st.integers(1, 8))
def test_hashes_agree_exactly_as_far_as_the_tokens_do(left, right, block_size):
    def chain(tokens):
        return extend_chain(toy_request("r", tokens), block_size, len(tokens))

    common = 0
    while common < min(len(left), len(right)) and left[common] == right[common]:
        common += 1
    one, two = chain(left), chain(right)
    assert len(one) == len(left) // block_size
    agree = [a == b for a, b in zip(one, two, strict=False)]
    assert agree == [index < common // block_size for index in range(len(agree))]


@given(TOKENS, TOKENS, st.integers(1, 8), st.data())
def test_growing_a_chain_equals_making_it_at_once(prompt, output, block_size, data):
    request = toy_request("r", prompt)
    for token in output:
        request.output_token_ids.append(token)
        if data.draw(st.booleans()):
            extend_chain(request, block_size, request.num_tokens)
    grown = extend_chain(request, block_size, request.num_tokens)
    assert grown == extend_chain(toy_request("s", prompt + output), block_size, len(prompt + output))


def test_extra_and_parent_count():
    base = hash_block(ROOT_HASH, [1, 2])
    assert base != hash_block(ROOT_HASH, [1, 2], b"x")
    assert base != hash_block(base, [1, 2])
    assert hash_block(ROOT_HASH, [1], struct.pack("<q", 2)) != hash_block(ROOT_HASH, [1, 2])


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"pattern": "A", "block_size": 16}, 16),
        ({"pattern": "MA", "block_size": 32, "mode": "align"}, 32),
        ({"pattern": "M", "block_size": 32, "mode": "align"}, 32),
        ({"pattern": "MA", "block_size": 16, "mode": "none"}, None),
    ],
)
def test_one_hash_a_block_unless_states_are_not_kept(config, expected):
    assert hash_block_size(plan_cache(toy_config(**config))) == expected
