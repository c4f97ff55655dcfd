"""Which prompts a cell runs: real text, and cuts at the lengths where its blocks and chunks begin and end."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class Planned:
    """One prompt of a cell.

    Attributes:
        name: Reads aloud.
        tokens: The prompt.
        family: `text`, `block` or `chunk`; prompts of family `block` share their beginning.
    """

    name: str
    tokens: Tokens
    family: str


EVERYTHING = Workload()


def plan(tokenizer: Tokenizer | None, config: EngineConfig, workload: Workload = EVERYTHING) -> tuple[Planned, ...]:
    """Choose the prompts of a cell; those that do not fit its `max_model_len` are left out.

    All are texts, and lengths k * block for k in (1, 3) and k * chunk for k in (1, 2), each -1, 0 and +1.

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
    return tuple(prompt for prompt in found if len(prompt.tokens) <= longest)


def chunk_size(config: EngineConfig) -> int | None:
    """Most prompt tokens of one request in one step; None where prompts are never split."""
    scheduler = config.scheduler
    if not scheduler.enable_chunked_prefill:
        return None
    threshold = scheduler.long_prefill_token_threshold
    return min(scheduler.max_num_batched_tokens, threshold) if threshold > 0 else scheduler.max_num_batched_tokens


def _cuts(tokenizer: Tokenizer, family: str, size: int, multiples: tuple[int, ...]) -> list[Planned]:
    wanted = {k * size + delta for k in multiples for delta in (-1, 0, 1)}
    cuts = boundary_prompts(tokenizer, size, size, blocks=max(multiples))
    return [
        Planned(cut.name, cut.token_ids, family)
        for cut in cuts
        if cut.name.startswith(family) and len(cut.token_ids) in wanted
    ]
