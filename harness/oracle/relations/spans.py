"""Prompts at and around block boundaries, the longest over three aligned blocks or more."""

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.plan import SPAN
from staticfire.harness.oracle.relations.base import Outcome, Trial


class BlockBoundaries:
    """The cold run must hold a prompt of at least `SPAN` run-time blocks."""

    name = "block-boundaries"

    def applies(self, config: EngineConfig) -> bool:  # noqa: ARG002 - the contract's
        """Every configuration has blocks."""
        return True

    def out_of_reach(self, config: EngineConfig) -> str | None:  # noqa: ARG002 - the contract's
        """Nowhere: prompts have their lengths in any layout."""
        return None

    def check(self, trial: Trial) -> Outcome:
        """Look at the lengths; the comparison itself is the cold run's."""
        block = trial.config.runtime.block_size
        longest = max(len(answered.prompt.tokens) for answered in trial.cold)
        spanned = longest // block
        short = f"the longest prompt that fits has {longest} tokens, {SPAN} blocks of {block} are {SPAN * block}"
        return Outcome((), None if spanned >= SPAN else short, {"blocks_spanned": spanned})
