"""A prompt whose beginning is cached gives what it gives cold."""

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.relations.base import Answered, Outcome, Trial, several_engines

AGAIN = ("block", "text")
"""Families of prompts to run again. Block prompts share their beginning, so one may find what another left; texts find
their own."""


class PrefixHit:
    """Run the block prompts and the texts a second time; each of them must find its beginning in the cache.

    A prompt of more than one block that is no multiple of the block has its last boundary cached by the cold run, so a
    miss there is a fault; at a multiple the last boundary may not be used (one token must be computed), and in mode
    `align` an earlier state need not exist.
    """

    name = "prefix-hit"

    def applies(self, config: EngineConfig) -> bool:
        """Where prefix caching is on."""
        return config.cache.enable_prefix_caching

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """With several engines: the second run may go where the first has left nothing."""
        return several_engines(config)

    def check(self, trial: Trial) -> Outcome:
        """Run again, and count the hits and the restored states."""
        prompts = [answered.prompt for answered in trial.cold if answered.prompt.family in AGAIN]
        again = trial.answer(self.name, trial.subject, prompts)
        cached = sum(answered.answer.stats.num_cached_tokens for answered in again)
        restored = sum(answered.answer.stats.restored_states for answered in again)
        hybrid = bool(trial.config.model.info.recurrent_layers)
        return Outcome(
            again,
            _vacuous(again, trial.config.runtime.block_size, restored, hybrid),
            {"cached_tokens": cached} | ({"restored_states": restored} if hybrid else {}),
        )


def _vacuous(again: list[Answered], block: int, restored: int, hybrid: bool) -> str | None:
    due = {
        a.prompt.name: (a.answer.stats.num_cached_tokens, length // block * block)
        for a in again
        if (length := len(a.prompt.tokens)) > block and length % block
    }
    if not due:
        return f"no prompt is longer than a block of {block} tokens"
    missed = [f"{name} ({found} of {wanted})" for name, (found, wanted) in due.items() if found < wanted]
    if missed:
        return f"fewer cached tokens the second time than the last boundary has: {', '.join(missed)}"
    if hybrid and not restored:
        return "tokens were cached, but no recurrent state was restored"
    return None
