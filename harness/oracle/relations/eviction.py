"""A prefix whose blocks were given to others is computed anew, and gives what it gives cold."""

from staticfire.engine.config import accept
from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.errors import RequestError
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.oracle.relations.base import Outcome, Trial, other_processes
from staticfire.harness.oracle.relations.preemption import Foretold, ample, rehearse
from staticfire.harness.oracle.subject import Subject


class Eviction:
    """In a pool that holds one long request and no more: run it, run others, run it again, each alone."""

    name = "eviction"

    def applies(self, config: EngineConfig) -> bool:
        """Where prefix caching is on."""
        return config.cache.enable_prefix_caching

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """In other processes: it takes a second engine, and starting those twice costs more than it shows."""
        return other_processes(config) and "it starts a second engine, which is done in one process only"

    def check(self, trial: Trial) -> Outcome:
        """Run in the smallest pool, and see that the last run found less than was cached."""
        longest = max(trial.family("block"), key=lambda prompt: len(prompt.tokens))
        others = [prompt for prompt in trial.family("later-block", "one-token") if prompt.tokens != longest.tokens]
        alone = Foretold(longest.tokens, trial.continuations[longest.tokens], trial.params())
        length = len(alone.prompt) + len(alone.continuation)
        for blocks in range(2, ample(trial.config, [length])):
            typed = {**trial.typed, "num_gpu_blocks_override": blocks, "max_model_len": length}
            try:
                rehearse(settle_worker(accept(typed, trial.config.model.info, trial.config.device)), [alone])
            except (ConfigError, RequestError):
                continue
            break
        else:
            return Outcome((), "no pool holds the longest prompt", {"evicted": 0})
        with Subject(trial.checkpoint, typed) as subject:
            answered = [
                answer
                for prompt in (longest, *others, longest)
                for answer in trial.answer(self.name, subject, [prompt])
            ]
        block = trial.config.runtime.block_size
        cached = (len(longest.tokens) - 1) // block * block
        evicted = cached - answered[-1].answer.stats.num_cached_tokens
        reason = f"all {cached} tokens of the prompt were still cached in a pool of {blocks} blocks"
        return Outcome(answered, None if evicted > 0 else reason, {"evicted": evicted, "blocks": blocks})
