"""Requests begin in the order of the scheduling policy."""

from itertools import zip_longest

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.relations.base import Outcome, Trial, other_processes
from staticfire.harness.oracle.subject import params

MOST_SEATS = 16
ROUNDS = 2
"""How many times as many requests as may run at once."""


class AdmissionOrder:
    """Ask for more requests than may run at once, the later ones of higher priority, and see who begins when."""

    name = "admission-order"

    def applies(self, config: EngineConfig) -> bool:
        """Where so few may run at once that others can be made to wait."""
        return config.scheduler.max_num_seqs <= MOST_SEATS

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """In other processes: who is in a step is not seen there."""
        return other_processes(config)

    def check(self, trial: Trial) -> Outcome:
        """Let requests of one token each wait for seats, and compare their order with the policy's."""
        prompts = trial.family("one-token")
        count = ROUNDS * trial.config.scheduler.max_num_seqs
        ids = [f"{self.name}-{i}" for i in range(count)]
        by_priority = trial.config.scheduler.policy == "priority"
        # Pairs share a priority, so that within one the earlier must begin first.
        urgency = [(count - i) // 2 for i in range(count)]
        assert trial.subject.ledger is not None
        trial.subject.run(
            [prompts[i % len(prompts)].tokens for i in range(count)],
            [params(2, priority=urgency[i]) for i in range(count)],
            request_ids=ids,
        )
        began = trial.subject.ledger.first_steps()
        order = sorted(range(count), key=lambda i: (urgency[i], i) if by_priority else (i,))
        expected, observed = [ids[i] for i in order], list(began)
        broken = []
        if observed != expected:
            pairs = list(zip_longest(observed, expected, fillvalue="none"))
            at, (found, due) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
            policy = trial.config.scheduler.policy
            broken = [f"under the policy {policy!r} the request to begin as number {at + 1} is {due}; {found} began"]
        waited = sum(step > 0 for step in began.values())
        return Outcome((), None if waited else "no request had to wait", {"waited": waited}, broken)
