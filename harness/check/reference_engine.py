"""Our own engine, asked in this process."""

from staticfire import __version__
from staticfire.harness.check.engines import Asked
from staticfire.harness.check.models import named_configuration
from staticfire.harness.check.negative import Template
from staticfire.harness.check.question import Answer, Question, UnknownModel
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe.reference import ReferenceProbe


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
        self._unknown: dict[str, str] = {}

    @property
    def title(self) -> str:
        """Name and version."""
        return f"reference {__version__}"

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._device.name

    def ask(self, questions: list[Question]) -> list[Answer]:
        """Answer questions, in their order."""
        return [self._one(question) for question in questions]

    def _one(self, question: Question) -> Answer:
        if question.model in self._unknown:
            return UnknownModel(question.model, self._unknown[question.model])
        try:
            return self._probe.ask(self._model(question.model), question.arguments)
        except InputError as error:
            self._unknown[question.model] = str(error)
            return UnknownModel(question.model, str(error))

    def _model(self, model: str) -> str:
        return named_configuration(model, self._folder) or model

    def chain(self, question: Question) -> tuple[str, ...]:
        """How the values that a refusal is about came to be."""
        return self._probe.chain(self._model(question.model), question.arguments)

    def doubt(self, question: Question) -> str:  # noqa: ARG002 -- the contract's signature
        """Every model that it knows has its own configuration."""
        return ""

    def messages(self) -> tuple[Template, ...]:
        """What its rules say."""
        return tuple(Template("ConfigError", text) for text in self._probe.messages())

    def close(self) -> None:
        """Nothing to let go of."""
