"""A prompt computed in several chunks gives what it gives in one."""

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
        """Count the prompts that were split; the comparison itself is the cold run's."""
        split = sum(prefill_chunks(answered) > 1 for answered in trial.cold)
        reason = f"no prompt was split, though chunks hold at most {chunk_size(trial.config)} tokens"
        return Outcome((), None if split else reason, {"prompts_split": split})


def prefill_chunks(answered: Answered) -> int:
    """Chunks in which a prompt was computed for the first time."""
    end = len(answered.prompt.tokens)
    reached, count = 0, 0
    for start, length in answered.answer.stats.chunks:
        if reached < end and start + length > reached:
            count += 1
            reached = start + length
    return count
