"""A configuration as it is put to an engine, and what comes back."""

import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from staticfire.harness.check import command
from staticfire.harness.check.negative import Template
from staticfire.harness.probe.base import Accepted, Crashed, Entry, Rejected, Undecided
from staticfire.harness.scan.base import Constant

ENTRIES: Mapping[str, Entry] = {
    "vllm_runner": "LLM",
    "LLM": "LLM",
    "wrapper": "LLM",
    "RemoteOpenAIServer": "serve",
    "compare_settings": "serve",
    "command": "serve",
    "shell": "serve",
    "yaml": "serve",
    "AsyncEngineArgs": "serve",
    "VllmConfig": "VllmConfig",
}
"""Form of a site -> the engine's entry point; others go through `EngineArgs`. Defaults differ between them."""

ONLY_CONFIGURATION: Final = frozenset({"EngineArgs", "AsyncEngineArgs", "VllmConfig"})
"""Forms that make a configuration; whether a worker is ever started with it, the site does not say."""


@dataclass(frozen=True, slots=True)
class Question:
    """One configuration.

    Attributes:
        model: As it is typed; empty for a `VllmConfig(...)` without one.
        arguments: Keyword -> plain value.
        entry: `LLM`, `EngineArgs`, `serve`, or `VllmConfig`, whose keywords read `section.field`.
        environment: Variables that the code sets for the engine.
        argv: Words of a server's command line, where they are what is typed; the arguments then only say what they
            are read as.
        key: Equal for equal questions, whatever the order of the keywords.
    """

    model: str
    arguments: Mapping[str, Any] = field(hash=False, compare=False)
    entry: Entry = "EngineArgs"
    environment: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    argv: tuple[str, ...] | None = field(default=None, hash=False, compare=False)
    key: str = field(default="", init=False)

    def __post_init__(self) -> None:
        """Derive the key; types count, for `True` and `1` are different values to type."""
        typed = self.arguments if self.argv is None else {"argv": list(self.argv)}
        parts = [self.model, self.entry, typed, self.environment]
        text = json.dumps(parts, sort_keys=True, default=repr)
        object.__setattr__(self, "key", text)

    def replaced(self, arguments: Mapping[str, Any]) -> "Question":
        """The same model, entry and environment with other keywords; of a command line, the words change with them."""
        argv = None if self.argv is None else command.edited(self.argv, self.arguments, arguments)
        return Question(self.model, arguments, self.entry, self.environment, argv)


@dataclass(frozen=True, slots=True)
class UnknownModel:
    """No configuration of the model is at hand, so the engine was not asked.

    Attributes:
        model: As it is typed.
        how: What is wanting, where that is known.
        fault: What is wrong with the configuration that was found, and where it lies.
    """

    model: str
    how: str = ""
    fault: str = ""


Answer = Accepted | Undecided | Rejected | Crashed | UnknownModel


class Engine(Protocol):
    """An engine as a check sees it.

    Attributes:
        title: Name and version.
        device: Name of the device it answers for.
    """

    @property
    def title(self) -> str:
        """Name and version."""
        ...

    @property
    def versions(self) -> Mapping[str, str]:
        """Package -> version, of those in the engine's environment that suites ask about."""
        ...

    @property
    def constants(self) -> Mapping[str, Constant]:
        """`Class.NAME` -> what that name stands for, of the engine's own classes; none where they cannot be listed."""
        ...

    @property
    def device(self) -> str:
        """Name of the device."""
        ...

    def ask(self, questions: list[Question]) -> list[Answer]:
        """Answer questions, in their order."""
        ...

    def chain(self, question: Question) -> tuple[str, ...]:
        """How the values that a refusal is about came to be, one sentence an entry; empty where unknown."""
        ...

    def withheld(self, question: Question) -> Mapping[str, str]:
        """Variables of the question that the engine is asked without -> why."""
        ...

    def doubt(self, question: Question) -> str:
        """Why the answer to a question may be another for the model itself; empty where its own configuration was used.

        Only for a question that was asked.
        """
        ...

    def keywords(self, question: Question) -> AbstractSet[str]:
        """Every keyword that it takes where a question is asked; none where they cannot be listed."""
        ...

    def messages(self) -> tuple[Template, ...]:
        """Messages that refuse configurations, as far as they can be listed."""
        ...

    def close(self) -> None:
        """Let go of processes."""
        ...


class Desk:
    """Puts questions to an engine, each one once."""

    def __init__(self, engine: Engine) -> None:
        """Ask `engine`."""
        self.engine = engine
        self.answers: dict[str, Answer] = {}

    def ask(self, questions: list[Question]) -> list[Answer]:
        """Answer questions in their order; equal ones are asked once in the life of the desk."""
        fresh = {question.key: question for question in questions if question.key not in self.answers}
        ordered = [fresh[key] for key in sorted(fresh)]
        if ordered:
            for question, answer in zip(ordered, self.engine.ask(ordered), strict=True):
                self.answers[question.key] = answer
        return [self.answers[question.key] for question in questions]

    def one(self, question: Question) -> Answer:
        """Answer one question."""
        return self.ask([question])[0]

    def accepts(self, question: Question) -> bool:
        """Whether the engine accepts."""
        return isinstance(self.one(question), Accepted)
