"""Our own engine, asked in this process."""

from collections.abc import Mapping
from typing import Any

from staticfire import __version__
from staticfire.harness.check import frontend
from staticfire.harness.check.engines import Asked
from staticfire.harness.check.models import named_configuration
from staticfire.harness.check.negative import Template
from staticfire.harness.check.question import Answer, Question, UnknownModel
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.reference import ReferenceProbe
from staticfire.harness.scan.base import Constant


class ReferenceEngine:
    """Answers for the reference engine."""

    def __init__(self, asked: Asked) -> None:
        """Answer for a device.

        Raises:
            InputError: Unknown device.
        """
        self._device = devices.find(asked.device)
        self._probe = ReferenceProbe(self._device)
        self._folder = asked.model_configs
        self._source = ModelSource(asked.model_configs)
        self._unknown: dict[str, UnknownModel | None] = {}

    @property
    def title(self) -> str:
        """Name and version."""
        return f"reference {__version__}"

    @property
    def versions(self) -> Mapping[str, str]:
        """Package -> version, of those in the engine's environment that suites ask about."""
        return {}

    @property
    def constants(self) -> Mapping[str, Constant]:
        """It has no class whose names a suite could type."""
        return {}

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._device.name

    def ask(self, questions: list[Question]) -> list[Answer]:
        """Answer questions, in their order.

        Raises:
            InputError: A configuration that the user supplies cannot be used.
        """
        fresh = [question.model for question in questions if question.model not in self._unknown]
        _, broken = self._source.look_up(fresh)
        for model in fresh:
            self._unknown[model] = UnknownModel(model, fault=broken[model]) if model in broken else None
        return [self._one(question) for question in questions]

    def _one(self, question: Question) -> Answer:
        unknown = self._unknown[question.model]
        if unknown is not None:
            return unknown
        try:
            return self._probe.ask_within_limits(self._model(question.model), _typed(question))
        except InputError as error:
            named = self._model(question.model) != question.model
            fault = f"{self._model(question.model)}: {error}" if named else ""
            self._unknown[question.model] = made = UnknownModel(question.model, str(error), fault)
            return made

    def _model(self, model: str) -> str:
        return named_configuration(model, self._folder) or model

    def chain(self, question: Question) -> tuple[str, ...]:
        """How the values that a refusal is about came to be."""
        return self._probe.chain(self._model(question.model), _typed(question))

    def withheld(self, question: Question) -> Mapping[str, str]:
        """All variables: it reads none."""
        return dict.fromkeys(question.environment, "the reference engine reads no variables")

    def doubt(self, question: Question) -> str:  # noqa: ARG002 -- the contract's signature
        """Every model that it knows has its own configuration."""
        return ""

    def keywords(self, question: Question) -> frozenset[str]:
        """The keywords of its configuration, which every entry point takes but a configuration built by hand."""
        return frozenset() if question.entry == "VllmConfig" else self._probe.keywords()

    def messages(self) -> tuple[Template, ...]:
        """What its rules say."""
        return tuple(Template("ConfigError", text) for text in self._probe.messages())

    def close(self) -> None:
        """Nothing to let go of."""


def _typed(question: Question) -> Mapping[str, Any]:
    """Keywords as the engine is to read them: those of a command line as its parser does."""
    return frontend.parsed(dict(question.arguments)) if question.entry == "serve" else question.arguments
