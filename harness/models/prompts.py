"""Prompts of real English text, and cuts of it at exact token lengths. Imports no torch.

The prose is our own and ships in `matrices/text/`; `prompts.json` there says which prompts are made of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol


class Tokenizer(Protocol):
    """What is asked of a tokenizer: `encode` gives ids, or an object that holds them as `ids`."""

    def encode(self, text: str, /) -> Any:
        """Tokens of a text."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with a name; exactly one of `text` and `token_ids` decides what it is.

    Attributes:
        name: Reads aloud, unique in its list.
        text: The text; empty for a prompt given as tokens.
        token_ids: The tokens; empty for a prompt given as text.
    """

    name: str
    text: str = ""
    token_ids: tuple[int, ...] = ()


@cache
def passages() -> dict[str, str]:
    """The shipped prose by name, in the order of the names. Treat as read-only."""
    folder = files("staticfire.matrices").joinpath("text")
    found = {
        item.name[:-4]: item.read_text(encoding="utf-8") for item in folder.iterdir() if item.name.endswith(".txt")
    }
    return {name: found[name] for name in sorted(found)}


def load() -> tuple[Prompt, ...]:
    """The committed prompts: from one word to several pages, some sharing a long beginning."""
    return tuple(Prompt(entry["name"], text=_text(entry)) for entry in _document()["prompts"])


def benchmark_lengths() -> tuple[int, ...]:
    """The committed prompt lengths of the benchmarks, in tokens."""
    return tuple(_document()["benchmark_lengths"])


def sized_prompts(tokenizer: Tokenizer, lengths: Sequence[int]) -> tuple[Prompt, ...]:
    """Cut one prompt of each length, each from another place of the prose, so that none is a prefix of another.

    Args:
        tokenizer: The model's tokenizer.
        lengths: Tokens of each prompt.

    Returns:
        One prompt a length, as token ids.
    """
    stream = _stream(tokenizer, max(lengths, default=0))
    # A stride that shares no factor with the stream visits distinct places.
    return tuple(
        Prompt(f"cut-{index}-of-{length}", token_ids=_cut(stream, 37 * index + 11, length))
        for index, length in enumerate(lengths)
    )


def boundary_prompts(tokenizer: Tokenizer, block: int, chunk: int, *, blocks: int = 3) -> tuple[Prompt, ...]:
    """Cut prompts whose lengths stand at, one below and one above multiples of the block and of the chunk.

    Lengths k*block and k*chunk, each -1, 0 and +1, for k up to `blocks`. Prompts of one family (block or chunk) share
    their beginning, so later ones can hit what earlier ones cached; the two families begin differently.

    Args:
        tokenizer: The model's tokenizer.
        block: Tokens of an aligned cache block.
        chunk: Tokens of a prefill chunk, such as the batch-token budget.
        blocks: Largest multiple.

    Returns:
        The prompts as token ids, without two of equal length in one family.

    Raises:
        ValueError: A size below 1.
    """
    if min(block, chunk, blocks) < 1:
        raise ValueError(f"block, chunk and blocks must be at least 1, got {block}, {chunk}, {blocks}")
    stream = _stream(tokenizer, max(block, chunk) * blocks + 1)
    made = []
    for family, size, start in (("block", block, 0), ("chunk", chunk, 301)):
        lengths = sorted({k * size + delta for k in range(1, blocks + 1) for delta in (-1, 0, 1)} - {0})
        made += [Prompt(f"{family}-{size}-{length}", token_ids=_cut(stream, start, length)) for length in lengths]
    return tuple(made)


@cache
def _document() -> dict[str, Any]:
    resource = files("staticfire.matrices").joinpath("text", "prompts.json")
    document: dict[str, Any] = json.loads(resource.read_text(encoding="utf-8"))
    return document


def _text(entry: dict[str, Any]) -> str:
    passage = passages()[entry["passage"]].rstrip("\n") if "passage" in entry else ""
    return passage[: entry.get("chars")] + str(entry.get("text", ""))


def _stream(tokenizer: Tokenizer, at_least: int) -> tuple[int, ...]:
    """All prose as one run of tokens, repeated until it is long enough."""
    ids: tuple[int, ...] = ()
    for text in passages().values():  # one by one: a tokenizer warns of a text beyond the model's length
        encoded = tokenizer.encode(text)
        ids += tuple(getattr(encoded, "ids", encoded))
    return ids * (1 + (at_least + 1000) // len(ids))


def _cut(stream: tuple[int, ...], start: int, length: int) -> tuple[int, ...]:
    start %= max(1, len(stream) - length)
    return stream[start : start + length]
