"""Requests that are aborted in mid-run leave the others, and the engine, as they would be without them."""

from collections.abc import Sequence

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.plan import Planned
from staticfire.harness.oracle.relations.base import Outcome, Trial, decides_tokens, other_processes
from staticfire.harness.oracle.subject import Run

MOST_REQUESTS = 9
IN_PROMPT, DECODING, WAITING = "in its prompt", "while it generates", "before it began"


class Aborts:
    """Abort one request in each condition that there is: waiting, in the middle of its prompt, generating."""

    name = "aborts"

    def applies(self, config: EngineConfig) -> bool:
        """Where some requests run beside others."""
        return config.scheduler.max_num_seqs > 1

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """In other processes: there an abort comes at a moment that nobody knows."""
        return other_processes(config)

    def check(self, trial: Trial) -> Outcome:
        """Run block prompts, one more than run at once unless those are many, and abort some between steps."""
        shortest_first = sorted(trial.family("block"), key=lambda prompt: len(prompt.tokens))
        seats = trial.config.scheduler.max_num_seqs
        prompts = [shortest_first[i % len(shortest_first)] for i in range(min(seats + 1, MOST_REQUESTS))]
        ids = [f"{self.name}-{i}" for i in range(len(prompts))]
        victims = _Victims(trial, ids, prompts)
        runs = trial.subject.run(
            [prompt.tokens for prompt in prompts], trial.params(), request_ids=ids, after_step=victims.choose
        )
        spared = [i for i, name in enumerate(ids) if name not in victims.chosen.values()]
        answered = trial.answered(self.name, trial.subject, [prompts[i] for i in spared], [runs[i] for i in spared])
        broken = [*_ends(trial, ids, runs, victims), *_left_behind(trial)]
        due = [DECODING, *([WAITING] if len(prompts) > seats else [])]
        missing = [when for when in due if when not in victims.chosen]
        vacuous = f"no request was aborted {' nor '.join(missing)}" if missing else None
        return Outcome(answered, vacuous, {"aborted": len(victims.chosen)}, broken)


class _Victims:
    """Chooses whom to abort: in the first step who waits and who is in mid-prompt, in a later one who generates."""

    def __init__(self, trial: Trial, ids: Sequence[str], prompts: Sequence[Planned]) -> None:
        self._subject = trial.subject
        self._lengths = {name: len(prompt.tokens) for name, prompt in zip(ids, prompts, strict=True)}
        self.chosen: dict[str, str] = {}

    def choose(self, step: int) -> None:
        """Abort, once the step of that number is computed."""
        assert self._subject.ledger is not None
        steps = self._subject.ledger.steps
        chunks = steps[step]
        if step == 0:
            self._abort(WAITING, [name for name in self._lengths if name not in {c.request_id for c in chunks}][-1:])
        halfway = [c.request_id for c in chunks if c.start + c.length < self._lengths[c.request_id]]
        self._abort(IN_PROMPT, halfway[:1])
        generating = [c.request_id for c in chunks if c.start > self._lengths[c.request_id]]
        if len(generating) > 1:  # one in the middle of the batch: rows after it move up
            self._abort(DECODING, generating[len(generating) // 2 :][:1])

    def _abort(self, when: str, names: Sequence[str]) -> None:
        if names and when not in self.chosen and names[0] not in self.chosen.values():
            self.chosen[when] = names[0]
            self._subject.llm.abort(names)


def _ends(trial: Trial, ids: Sequence[str], runs: Sequence[Run], victims: _Victims) -> list[str]:
    """What is wrong with how requests ended."""
    found = []
    for name, run in zip(ids, runs, strict=True):
        when = next((when for when, victim in victims.chosen.items() if victim == name), None)
        if (run.ended == "abort") != (when is not None):
            found.append(f"request {name}, {f'aborted {when}' if when else 'not aborted'}, ended by {run.ended!r}")
        expected = trial.continuations[tuple(run.output.prompt_token_ids)]
        if when and decides_tokens(trial.config) and run.tokens != expected[: len(run.tokens)]:
            found.append(f"request {name}, aborted {when}, has the tokens {run.tokens}, not the first of {expected}")
        if when and len(run.tokens) >= trial.max_tokens:
            found.append(f"request {name}, aborted {when}, was computed to its end")
    return found


def _left_behind(trial: Trial) -> list[str]:
    """What an idle engine still holds."""
    stats = trial.subject.llm.client.stats()[0]
    held = {
        "requests that run": stats.num_running,
        "requests that wait": stats.num_waiting,
        "the pool in use": stats.kv_cache_usage,
    }
    return [f"with no request left the engine has {what}: {value:g}" for what, value in held.items() if value]
