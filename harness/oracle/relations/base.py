"""The contract of a relation: an extra run or an extra look, and proof that its condition occurred."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from staticfire.engine.config.engine_config import EngineConfig
from staticfire.harness.oracle.base import Tokens
from staticfire.harness.oracle.plan import Planned
from staticfire.harness.oracle.subject import Answer, Subject


@dataclass(frozen=True, slots=True)
class Answered:
    """A prompt and what a run made of it; `run` names the run in reports."""

    run: str
    prompt: Planned
    answer: Answer


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
    """

    checkpoint: Path
    typed: Mapping[str, Any]
    subject: Subject
    cold: Sequence[Answered]
    continuations: Mapping[Tokens, Tokens]
    max_tokens: int

    @property
    def config(self) -> EngineConfig:
        """The accepted configuration."""
        return self.subject.config

    def answer(self, run: str, subject: Subject, prompts: Sequence[Planned]) -> list[Answered]:
        """Run prompts whose continuations are known."""
        tokens = [prompt.tokens for prompt in prompts]
        answers = subject.answers(tokens, [self.continuations[prompt] for prompt in tokens], self.max_tokens)
        return [Answered(run, prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a relation brings back.

    Attributes:
        answered: Answers of an extra run, to be compared like all others.
        vacuous: Why the condition did not occur; None where it did. A vacuous relation is a failure.
        figures: What the condition amounted to, for the report.
    """

    answered: Sequence[Answered]
    vacuous: str | None
    figures: Mapping[str, int]


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
