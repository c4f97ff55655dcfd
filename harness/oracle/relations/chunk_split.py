"""A prompt computed in several chunks gives what it gives in one, and no chunk is longer than it may be."""

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.plan import LONGEST_CHUNK, chunk_size
from staticfire.harness.oracle.relations.base import Answered, Outcome, Trial


class ChunkSplit:
    """The cold run must hold a prompt whose prefill took more than one chunk."""

    name = "chunk-split"

    def applies(self, config: EngineConfig) -> bool:
        """Where prompts longer than a chunk are among those planned."""
        chunk = chunk_size(config)
        return chunk is not None and chunk <= LONGEST_CHUNK

    def out_of_reach(self, config: EngineConfig) -> str | None:  # noqa: ARG002 - the contract's
        """Nowhere: requests tell their own chunks."""
        return None

    def check(self, trial: Trial) -> Outcome:
        """Count the prompts that were split, and hold every chunk to its limit; the comparison is the cold run's."""
        limit = chunk_size(trial.config) or 0
        split = sum(prefill_chunks(answered) > 1 for answered in trial.cold)
        reason = f"no prompt was split, though chunks hold at most {limit} tokens"
        longest = max((length for answered in trial.cold for _, length in answered.answer.stats.chunks), default=0)
        broken = [f"a chunk of {longest} tokens was computed: {_limits(trial.config)}"] if longest > limit else []
        figures = {"prompts_split": split, "longest_chunk": longest}
        return Outcome((), None if split else reason, figures, broken)


def prefill_chunks(answered: Answered) -> int:
    """Chunks in which a prompt was computed for the first time."""
    end = len(answered.prompt.tokens)
    reached, count = 0, 0
    for start, length in answered.answer.stats.chunks:
        if reached < end and start + length > reached:
            count += 1
            reached = start + length
    return count


def _limits(config: EngineConfig) -> str:
    scheduler = config.scheduler
    return (
        f"long_prefill_token_threshold={scheduler.long_prefill_token_threshold}, "
        f"max_num_batched_tokens={scheduler.max_num_batched_tokens}"
    )
