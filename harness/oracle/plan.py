"""Which prompts a cell runs: real text, and cuts at the lengths where its blocks and chunks begin and end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.errors import EngineError
from staticfire.engine.tokenizer import Tokenizer
from staticfire.harness.matrix.workload import Workload
from staticfire.harness.models.prompts import boundary_prompts, load
from staticfire.harness.oracle.base import Tokens

TEXTS = ("one-word", "question", "rules-a", "rules-b")
"""Committed prompts every cell runs; the last two share a long beginning."""

SPAN = 3
"""Blocks that the longest boundary prompts span."""

LONGEST_CHUNK = 512
"""A chunk longer than this is not walked around: such prompts would take longer than all others together."""

ONE_TOKEN_PROMPTS = 3

Family = Literal["text", "block", "chunk", "one-token", "later-block"]
KEPT_BACK: Final[frozenset[Family]] = frozenset({"one-token", "later-block"})
"""Families that relations run, and the cold run does not."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One prompt of a cell.

    Attributes:
        name: Reads aloud.
        tokens: The prompt.
        family: `text`; `block` or `chunk`, cut where those begin and end (prompts of family `block` share their
            beginning); `one-token`; `later-block`, which begins with the last block of the longest prompt of `block`.
    """

    name: str
    tokens: Tokens
    family: Family


EVERYTHING = Workload()


def plan(tokenizer: Tokenizer | None, config: EngineConfig, workload: Workload = EVERYTHING) -> tuple[Planned, ...]:
    """Choose the prompts of a cell; those that do not fit its `max_model_len` are left out.

    All are texts, lengths k * block for k in (1, 3) and k * chunk for k in (1, 2), each -1, 0 and +1, single tokens,
    and the end of the longest cut from its last block on.

    Raises:
        EngineError: The checkpoint has no tokenizer.
    """
    if tokenizer is None:
        raise EngineError("the checkpoint has no tokenizer.json, and the prompts are text")
    block, chunk = config.runtime.block_size, chunk_size(config)
    longest = config.model.max_model_len - workload.max_tokens
    if workload.prompts == "around-a-block":
        around = _cuts(tokenizer, "block", block, (1,))
        return tuple(cut for cut in around if len(cut.tokens) != block and len(cut.tokens) <= longest)
    texts = {prompt.name: prompt.text for prompt in load()}
    found = [Planned(name, tuple(tokenizer.encode(texts[name])), "text") for name in TEXTS]
    found += _cuts(tokenizer, "block", block, (1, SPAN))
    if chunk is not None and chunk <= LONGEST_CHUNK:
        found += _cuts(tokenizer, "chunk", chunk, (1, 2))
    found += _one_token(found)
    found += [
        Planned(f"{cut.name}-from-{start}", cut.tokens[start:], "later-block")
        for cut in found
        if cut.family == "block" and len(cut.tokens) == SPAN * block + 1 and (start := (SPAN - 1) * block)
    ]
    return tuple(prompt for prompt in found if len(prompt.tokens) <= longest)


def chunk_size(config: EngineConfig) -> int | None:
    """Most prompt tokens of one request in one step; None where prompts are never split."""
    scheduler = config.scheduler
    if not scheduler.enable_chunked_prefill:
        return None
    threshold = scheduler.long_prefill_token_threshold
    return min(scheduler.max_num_batched_tokens, threshold) if threshold > 0 else scheduler.max_num_batched_tokens


def _one_token(prompts: Sequence[Planned]) -> list[Planned]:
    """Prompts of one token each: the first different ones of a text."""
    text = next(prompt.tokens for prompt in prompts if prompt.name == TEXTS[-1])
    first = list(dict.fromkeys(text))[:ONE_TOKEN_PROMPTS]
    return [Planned(f"token-{token}", (token,), "one-token") for token in first]


def _cuts(
    tokenizer: Tokenizer, family: Literal["block", "chunk"], size: int, multiples: tuple[int, ...]
) -> list[Planned]:
    wanted = {k * size + delta for k in multiples for delta in (-1, 0, 1)}
    cuts = boundary_prompts(tokenizer, size, size, blocks=max(multiples))
    return [
        Planned(cut.name, cut.token_ids, family)
        for cut in cuts
        if cut.name.startswith(family) and len(cut.token_ids) in wanted
    ]
