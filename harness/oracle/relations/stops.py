"""A request ends by a stop token, by the end-of-sequence token unless it ignores that, or by its length: never else."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.oracle.base import Tokens
from staticfire.harness.oracle.drawing import number
from staticfire.harness.oracle.plan import Planned
from staticfire.harness.oracle.relations.base import Outcome, Trial, decides_tokens
from staticfire.harness.oracle.subject import Run

TEXT = "question"
HOT = 1e9
"""Temperature at which every token is as likely as any other: what is drawn is known without a model."""
SEEDS = 4096
"""Tried until one draws the end-of-sequence token in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class _Case:
    """One request and how it must end.

    Attributes:
        what: Reads aloud.
        params: What is asked.
        tokens: What it must generate; None where rounding may choose others.
        ended: Why it ends.
    """

    what: str
    params: SamplingParams
    tokens: Tokens | None
    ended: str


class Stops:
    """Ask for answers that must end early, and for the same ones where they must not."""

    name = "stops"

    def applies(self, config: EngineConfig) -> bool:  # noqa: ARG002 - the contract's
        """Every request ends."""
        return True

    def out_of_reach(self, config: EngineConfig) -> str | None:  # noqa: ARG002 - the contract's
        """Nowhere: how a request ended is part of its output."""
        return None

    def check(self, trial: Trial) -> Outcome:
        """Run all cases in one batch, and compare tokens and reasons."""
        prompt = trial.named(TEXT)
        if prompt is None:
            return Outcome((), f"the text {TEXT!r} does not fit", {"stopped": 0})
        cases = [*_greedy(trial, prompt), *_hot(trial, prompt)]
        runs = trial.subject.run([prompt.tokens] * len(cases), [case.params for case in cases])
        broken = [fault for case, run in zip(cases, runs, strict=True) if (fault := _fault(case, run))]
        wanted = sum(case.ended == "stop" for case in cases)
        eos = any(case.what.startswith("end of sequence") for case in cases)
        vacuous = None if eos else f"none of {SEEDS} seeds draws the end-of-sequence token in the middle of an answer"
        return Outcome((), vacuous, {"stopped": wanted}, broken)


def _greedy(trial: Trial, prompt: Planned) -> list[_Case]:
    """A stop token in the middle of the greedy answer, at its very end, and nowhere in it."""
    cold = next(answered for answered in trial.cold if answered.prompt.name == prompt.name)
    tokens = cold.answer.observed.tokens
    half = len(tokens) // 2
    at = next((i for i in range(half, len(tokens)) if tokens[i] not in tokens[:i]), len(tokens) - 1)
    at = tokens.index(tokens[at])
    stop, sure = tokens[at], decides_tokens(trial.config)
    absent = next(token for token in range(trial.config.model.info.vocab_size) if token not in tokens)

    def case(what: str, end: int, ended: str, **given: object) -> _Case:
        params = SamplingParams(**{"max_tokens": len(tokens), "ignore_eos": True, **given})  # type: ignore[arg-type]
        return _Case(what, params, tokens[:end] if sure else None, ended)

    return [
        case("a stop token", at + 1, "stop", stop_token_ids=(absent, stop)),
        case("a stop token as the last one allowed", at + 1, "stop", stop_token_ids=(stop,), max_tokens=at + 1),
        case("a stop token that never comes", len(tokens), "length", stop_token_ids=(absent,)),
        case("a length of one", 1, "length", max_tokens=1),
    ]


def _hot(trial: Trial, prompt: Planned) -> list[_Case]:
    """An answer whose tokens are known from the seed alone, with the end-of-sequence token in its middle."""
    eos = _eos(trial)
    vocabulary, most, first = trial.config.model.info.vocab_size, trial.max_tokens, len(prompt.tokens)
    for seed in range(SEEDS):
        tokens = tuple(int(number(seed, first + i) * vocabulary) for i in range(most))
        at = next((i for i, token in enumerate(tokens) if token in eos), most)
        if 1 <= at < most - 1:
            given = {"temperature": HOT, "seed": seed, "max_tokens": most}
            return [
                _Case("end of sequence", SamplingParams(**given), tokens[: at + 1], "stop"),  # type: ignore[arg-type]
                _Case("end of sequence ignored", SamplingParams(**given, ignore_eos=True), tokens, "length"),  # type: ignore[arg-type]
            ]
    return []


def _eos(trial: Trial) -> Sequence[int]:
    """End-of-sequence tokens of the checkpoint, as its `config.json` has them."""
    found = json.loads((trial.checkpoint / "config.json").read_text(encoding="utf-8")).get("eos_token_id")
    return found if isinstance(found, list) else [found]


def _fault(case: _Case, run: Run) -> str | None:
    tokens, params = run.tokens, case.params
    if run.ended != case.ended and case.tokens is not None:
        return f"{case.what}: the request ended by {run.ended!r} after {len(tokens)} tokens, not by {case.ended!r}"
    if case.tokens is not None and tokens != case.tokens:
        return f"{case.what}: the tokens are {tokens}, not {case.tokens}"
    stopping = [i for i, token in enumerate(tokens) if token in params.stop_token_ids]
    if stopping and (stopping[0] != len(tokens) - 1 or run.ended != "stop"):
        return f"{case.what}: the request went on after the stop token {tokens[stopping[0]]} and ended by {run.ended!r}"
    if not stopping and case.tokens is None and (run.ended != "length" or len(tokens) != params.max_tokens):
        return (
            f"{case.what}: ended by {run.ended!r} after {len(tokens)} of {params.max_tokens} tokens, none a stop token"
        )
    return None
