"""The contract of a relation: an extra run or an extra look, and proof that its condition occurred."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.engine.sampling_params import SamplingParams
from staticfire.harness.oracle.base import Array, Tokens
from staticfire.harness.oracle.compare import Expected
from staticfire.harness.oracle.laws import Tolerance
from staticfire.harness.oracle.plan import Family, Planned
from staticfire.harness.oracle.subject import Answer, Run, Subject, params


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt and what a run made of it.

    Attributes:
        run: Names the run in reports.
        prompt: The prompt.
        answer: What is compared.
        expected: What transformers says, where that is not its own greedy continuation; such an answer is not
            compared with the canonical cell.
    """

    run: str
    prompt: Planned
    answer: Answer
    expected: Expected | None = None


class Scores(Protocol):
    """Who knows what transformers thinks of any tokens."""

    def score(self, tokens: Tokens, last: int, routing: Array) -> Array:
        """Log-probabilities [last, V] of what follows each of the last of some tokens, under the routing given."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """A cell in the middle of being judged.

    Attributes:
        checkpoint: Folder of the checkpoint.
        typed: The engine keywords as the cell has them.
        subject: The engine, after the cold run.
        cold: Every prompt's answer in the cold run.
        continuations: Prompt -> the oracle's tokens.
        max_tokens: Tokens generated.
        kept_back: Prompts that the cold run leaves to the relations.
        scores: The oracle, for tokens that are not its own.
        allowed: How far the engine may be from the oracle.
    """

    checkpoint: Path
    typed: Mapping[str, Any]
    subject: Subject
    cold: Sequence[Answered]
    continuations: Mapping[Tokens, Tokens]
    max_tokens: int
    kept_back: Sequence[Planned]
    scores: Scores
    allowed: Tolerance

    @property
    def config(self) -> EngineConfig:
        """The accepted configuration."""
        return self.subject.config

    def params(self) -> SamplingParams:
        """What the cold run asks for."""
        return params(self.max_tokens)

    def family(self, *names: Family) -> list[Planned]:
        """The planned prompts of some families, those of the cold run first."""
        planned = [*(answered.prompt for answered in self.cold), *self.kept_back]
        return [prompt for prompt in planned if prompt.family in names]

    def named(self, name: str) -> Planned | None:
        """The planned prompt of that name; None where it does not fit."""
        planned = [*(answered.prompt for answered in self.cold), *self.kept_back]
        return next((prompt for prompt in planned if prompt.name == name), None)

    def answer(self, run: str, subject: Subject, prompts: Sequence[Planned]) -> list[Answered]:
        """Run prompts whose continuations are known."""
        free = subject.run([prompt.tokens for prompt in prompts], self.params())
        return self.answered(run, subject, prompts, free)

    def answered(self, run: str, subject: Subject, prompts: Sequence[Planned], free: Sequence[Run]) -> list[Answered]:
        """Make answers of runs of prompts whose continuations are known."""
        tokens = [prompt.tokens for prompt in prompts]
        answers = subject.completed(tokens, free, [self.continuations[prompt] for prompt in tokens], self.max_tokens)
        return [Answered(run, prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a relation brings back.

    Attributes:
        answered: Answers of an extra run, to be compared like all others.
        vacuous: Why the condition did not occur; None where it did. A vacuous relation is a failure.
        figures: What the condition amounted to, for the report.
        broken: What the engine did that the relation forbids, a sentence each; any of them is a failure.
    """

    answered: Sequence[Answered]
    vacuous: str | None
    figures: Mapping[str, int]
    broken: Sequence[str] = ()


class Relation(Protocol):
    """A way in which a configuration must not change its outputs."""

    name: str

    def applies(self, config: EngineConfig) -> bool:
        """Whether this configuration promises the condition."""
        ...

    def out_of_reach(self, config: EngineConfig) -> str | None:
        """Why a promised condition is not looked at in this process layout; None where it is."""
        ...

    def check(self, trial: Trial) -> Outcome:
        """Bring the condition about and prove it."""
        ...


def several_engines(config: EngineConfig) -> str | None:
    """Why a condition that depends on who meets whom is out of reach, with data-parallel engines."""
    size = config.parallel.data_parallel_size
    return f"requests are spread over {size} engines, and which meet is not foretold" if size > 1 else None


def other_processes(config: EngineConfig) -> str | None:
    """Why a condition that is seen by watching the scheduler is out of reach, where it is in another process."""
    parallel = config.parallel
    if parallel.enable_multiprocessing or parallel.tensor_parallel_size > 1 or parallel.data_parallel_size > 1:
        return "steps are watched in one process only"
    return None


def decides_tokens(config: EngineConfig) -> bool:
    """Whether rounding leaves every choice of a token to the logits: two runs of one request give the same tokens."""
    return config.model.dtype in ("float32", "float64")
