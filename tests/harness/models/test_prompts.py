"""Prompts: what the matrix needs of them, and cuts at exact lengths."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.models import prompts


class Words:
    """A tokenizer of our own: one token a character."""

    def encode(self, text):
        return [ord(c) for c in text]


class Encoding:
    def __init__(self, ids):
        self.ids = ids


class RustLike:
    """The `tokenizers` library gives an object with `ids`."""

    def encode(self, text):
        return Encoding([ord(c) for c in text])


def test_there_are_enough_prompts_with_names_of_their_own():
    loaded = prompts.load()
    assert len(loaded) >= 12
    assert len({prompt.name for prompt in loaded}) == len(loaded)
    assert len({prompt.text for prompt in loaded}) == len(loaded)
    assert all(prompt.text.strip() for prompt in loaded)


def test_some_share_a_long_beginning():
    a, b = (next(p.text for p in prompts.load() if p.name == name) for name in ("rules-a", "rules-b"))
    assert a[:660] == b[:660]
    assert a != b


def test_every_passage_is_prose():
    for name, text in prompts.passages().items():
        assert len(text) > 800, name
        assert text.isascii(), name


def test_benchmark_lengths_are_sixteen_and_mixed():
    lengths = prompts.benchmark_lengths()
    assert len(lengths) == 16
    assert min(lengths) < 16
    assert max(lengths) > 200


@pytest.mark.parametrize("tokenizer", [Words(), RustLike()])
def test_boundary_prompts_have_the_lengths_they_promise(tokenizer):
    made = prompts.boundary_prompts(tokenizer, 80, 64)
    lengths: dict[str, list[int]] = {"block": [], "chunk": []}
    for prompt in made:
        family, size, length = prompt.name.split("-")
        assert len(prompt.token_ids) == int(length)
        assert int(size) == {"block": 80, "chunk": 64}[family]
        lengths[family].append(int(length))
    assert lengths == {
        "block": [79, 80, 81, 159, 160, 161, 239, 240, 241],
        "chunk": [63, 64, 65, 127, 128, 129, 191, 192, 193],
    }


def test_one_family_shares_its_beginning_and_the_other_does_not():
    made = prompts.boundary_prompts(Words(), 80, 80)
    block = [p.token_ids for p in made if p.name.startswith("block")]
    chunk = [p.token_ids for p in made if p.name.startswith("chunk")]
    assert all(longer[: len(shorter)] == shorter for shorter, longer in pairwise(block))
    assert block[0] != chunk[0]


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_sizes_below_one_are_refused(sizes):
    with pytest.raises(ValueError, match="must be at least 1"):
        prompts.boundary_prompts(Words(), sizes[0], sizes[1], blocks=sizes[2])


@given(st.lists(st.integers(1, 3000), max_size=8))
def test_sized_prompts_are_of_the_sizes_asked_for(lengths):
    made = prompts.sized_prompts(Words(), lengths)
    assert [len(prompt.token_ids) for prompt in made] == lengths


def test_sized_prompts_share_no_beginning():
    made = prompts.sized_prompts(Words(), prompts.benchmark_lengths())
    assert len({prompt.token_ids[:4] for prompt in made}) == len(made)


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 4))
def test_boundary_prompts_hold_for_any_sizes(block, chunk, blocks):
    made = prompts.boundary_prompts(Words(), block, chunk, blocks=blocks)
    have = {len(prompt.token_ids) for prompt in made}
    wanted = {k * size + d for size in (block, chunk) for k in range(1, blocks + 1) for d in (-1, 0, 1)} - {0}
    assert have == wanted
