"""A request that begins on a state which another request left gives what it gives on a fresh one."""

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.relations.base import Outcome, Trial, other_processes


class StateReuse:
    """Run prompts of one token alone: a step of one token each advances states in place, whoever left them."""

    name = "state-reuse"

    def applies(self, config: EngineConfig) -> bool:
        """Where states are kept."""
        return bool(config.model.info.recurrent_layers)

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """In other processes: whose blocks a request gets is not seen there."""
        return other_processes(config)

    def check(self, trial: Trial) -> Outcome:
        """Run them in one batch, and count those that began on states in used blocks."""
        prompts = trial.family("one-token")
        assert trial.subject.ledger is not None
        free = trial.subject.run([prompt.tokens for prompt in prompts], trial.params())
        ledger = trial.subject.ledger
        together = bool(ledger.steps) and all(chunk.length == 1 for chunk in ledger.steps[0])
        reused = sum(run.output.request_id in ledger.reused_states for run in free) if together else 0
        answered = trial.answered(self.name, trial.subject, prompts, free)
        reason = "no prompt of one token began on a state that an earlier request had left"
        return Outcome(answered, None if reused else reason, {"states_reused": reused})
