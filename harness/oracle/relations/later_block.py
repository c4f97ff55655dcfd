"""Equal blocks after different beginnings are not the same block: a prefix is found by all its tokens."""

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.relations.base import Outcome, Trial, several_engines


class LaterBlock:
    """Run a prompt that begins with a later block of another, which is cached; it must compute that block anew."""

    name = "later-block"

    def applies(self, config: EngineConfig) -> bool:
        """Where prefix caching is on."""
        return config.cache.enable_prefix_caching

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """With several engines: the second prompt may go where the first has left nothing."""
        return several_engines(config)

    def check(self, trial: Trial) -> Outcome:
        """Run the whole prompt, to prove that its blocks are found; then its end alone, twice."""
        later = trial.family("later-block")
        whole = [
            prompt
            for end in later
            for prompt in trial.family("block")
            if prompt.tokens[-len(end.tokens) :] == end.tokens
        ]
        if not later or not whole:
            return Outcome((), "the prompt whose last block is to be met again does not fit", {"cached_tokens": 0})
        found = trial.answer(f"{self.name}, whole", trial.subject, whole)
        cached = found[0].answer.stats.num_cached_tokens
        first, second = (trial.answer(self.name, trial.subject, later) for _ in range(2))
        block, hit = trial.config.runtime.block_size, first[0].answer.stats.num_cached_tokens
        again = second[0].answer.stats.num_cached_tokens
        broken = [f"{hit} tokens were taken from the cache, though no request began with them"] if hit else []
        missed = f"the block that is met again was not cached: {cached} tokens of the whole prompt were found"
        lost = f"the block was not found under its own beginning either: {again} tokens, {block} expected"
        vacuous = missed if cached < len(whole[0].tokens) - 1 else lost if again != block else None
        return Outcome(
            (*found, *first, *second), vacuous, {"cached_tokens": cached, "computed_anew": block - hit}, broken
        )
