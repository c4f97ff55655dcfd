"""A seeded request draws what the oracle's distribution says, whatever it is batched with and however it is cut."""

from dataclasses import dataclass, replace
from typing import Any

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.oracle.base import Array
from staticfire.harness.oracle.compare import Expected
from staticfire.harness.oracle.drawing import Law, drawn, possible
from staticfire.harness.oracle.plan import Planned
from staticfire.harness.oracle.relations.base import Answered, Outcome, Trial, decides_tokens
from staticfire.harness.oracle.subject import TOP, Answer, Run, observed

LONGEST = "the longest cut"

ASKED = (
    ("question", {"temperature": 2.5, "seed": 5}),
    ("question", {"temperature": 2.5, "top_p": 0.6, "seed": 6}),
    (LONGEST, {"temperature": 3.0, "top_k": 4, "seed": 7}),
    ("one-word", {"temperature": 2.0, "top_k": 12, "top_p": 0.7, "seed": 8}),
)
"""Text and parameters of every seeded request. High temperatures, for the tiny models are sure of themselves."""

UNSEEDED = ("one-word", {"temperature": 5.0, "logprobs": None})
"""The same request twice, without a seed: the two must go different ways. They want no values, and stand before those
that do."""


@dataclass(slots=True)
class _Seen:
    """What the draws amounted to: none of these counts may be zero.

    Attributes:
        not_best: Tokens that a greedy request would not have chosen.
        by_top_k: Tokens that would have been others without top-k.
        by_top_p: The same of top-p.
    """

    not_best: int = 0
    by_top_k: int = 0
    by_top_p: int = 0


class Sampling:
    """Draw in one batch, then each request alone, and hold every token to the oracle's distribution there."""

    name = "sampling"

    def applies(self, config: EngineConfig) -> bool:
        """Where rounding decides no draw."""
        return decides_tokens(config)

    def out_of_reach(self, config: EngineConfig) -> str | None:  # noqa: ARG002 - the contract's
        """Nowhere: what was drawn can be seen in any layout."""
        return None

    def check(self, trial: Trial) -> Outcome:
        """Run, and judge each token in the context that the engine itself has made."""
        asked = [(prompt, _params(trial, **given)) for name, given in ASKED if (prompt := _prompt(trial, name))]
        twice = trial.named(UNSEEDED[0])
        if len(asked) < len(ASKED) or twice is None:
            return Outcome((), "the texts that are sampled after do not fit", {"drawn": 0})
        unseeded = [(twice, _params(trial, **UNSEEDED[1]))] * 2
        one, other, *together = _run(trial, [*unseeded, *asked])
        alone = [run for pair in asked for run in _run(trial, [pair])]
        seen, broken = _Seen(), []
        answered: list[Answered] = []
        for label, runs in (("in a batch", together), ("alone", alone)):
            for (prompt, params), run in zip(asked, runs, strict=True):
                rows = trial.scores.score((*prompt.tokens, *run.tokens[:-1]), len(run.tokens), run.routing)
                broken += [f"{prompt.name}, {_shown(params)}, {label}: {fault}" for fault in
                           _faults(rows, run, prompt, params, trial.allowed.max, seen)][:1]  # fmt: skip
                expected = Expected(run.tokens, run.tokens, rows)
                answer = Answer(observed(run.tokens, run), run.stats, forced_again=False)
                answered.append(Answered(f"{self.name}, {label}", prompt, answer, expected))
        if one.tokens == other.tokens:
            broken.append(f"two requests without a seed drew the same tokens: {one.tokens}")
        figures = {"not_the_best": seen.not_best, "decided_by_top_k": seen.by_top_k, "decided_by_top_p": seen.by_top_p}
        idle = [what for what, count in figures.items() if not count]
        vacuous = f"no draw was {', none was '.join(what.replace('_', ' ') for what in idle)}" if idle else None
        return Outcome(answered, vacuous, figures, broken)


def _prompt(trial: Trial, name: str) -> Planned | None:
    if name == LONGEST:
        return max(trial.family("block"), key=lambda prompt: len(prompt.tokens), default=None)
    return trial.named(name)


def _params(trial: Trial, **given: Any) -> SamplingParams:
    return replace(SamplingParams(max_tokens=trial.max_tokens, ignore_eos=True, logprobs=TOP), **given)


def _run(trial: Trial, asked: list[tuple[Planned, SamplingParams]]) -> list[Run]:
    return trial.subject.run([prompt.tokens for prompt, _ in asked], [params for _, params in asked])


def _faults(rows: Array, run: Run, prompt: Planned, params: SamplingParams, off: float, seen: _Seen) -> list[str]:
    """Tokens that the law does not allow; counts what the parameters decided."""
    found = []
    for index, (row, token) in enumerate(zip(rows, run.tokens, strict=True)):
        law = Law.of(params, len(prompt.tokens) + index)
        allowed = possible(row, law, off)
        if token not in allowed:
            expected = ", ".join(map(str, sorted(allowed)))
            found.append(f"token {token} was drawn at position {index} where the law draws {expected}")
        seen.not_best += drawn(row, law) != int(row.argmax())
        seen.by_top_k += params.top_k > 0 and drawn(row, replace(law, top_k=0)) != drawn(row, law)
        seen.by_top_p += params.top_p < 1 and drawn(row, replace(law, top_p=1.0)) != drawn(row, law)
    return found


def _shown(params: SamplingParams) -> str:
    return f"temperature={params.temperature}, top_k={params.top_k}, top_p={params.top_p}, seed={params.seed}"
