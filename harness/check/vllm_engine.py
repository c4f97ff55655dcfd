"""An installed vLLM, asked through its probe; models that are not at hand are stood in for by their architecture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from staticfire.harness.check import architectures
from staticfire.harness.check.engines import Asked
from staticfire.harness.check.messages import normalise, origin_file
from staticfire.harness.check.question import Answer, Question, UnknownModel
from staticfire.harness.check.templates import templates
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe import base
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.registry import Options, open_probe
from staticfire.harness.probe.vllm.probe import VllmProbe

STAND_IN: Final = "the configuration of the model is not at hand; that of its architecture stands in"
GUESSED: Final = "the architecture of the model is guessed from its name"
HOW: Final = "staticfire check PATH --engine vllm --engine-python /path/to/bin/python"


@dataclass(frozen=True, slots=True)
class Model:
    """A model as the engine can be asked about it.

    Attributes:
        folder: Folder with a `config.json`.
        larger: For a stand-in, the same with other sizes; empty otherwise, or where there is none.
        doubt: Why its answers may not be those of the model itself.
    """

    folder: str
    larger: str = ""
    doubt: str = ""


class VllmEngine:
    """Answers for the vLLM of one interpreter."""

    def __init__(self, asked: Asked) -> None:
        """Look at the interpreter; nothing is started yet.

        Raises:
            InputError: No such device, no such interpreter, or no vLLM in it.
        """
        device = devices.find(asked.device)
        options = Options(device, asked.python, use_cache=asked.cache, processes=asked.processes)
        try:
            probe = open_probe("vllm", options)
        except InputError as error:
            raise InputError(f"No engine to ask. {error}\nName one: {HOW}") from error
        assert isinstance(probe, VllmProbe)
        self._probe = probe
        self._device = device.name
        self._source = ModelSource(asked.model_configs)
        self._named = architectures.read(architectures.tables(asked.suite))
        self._models: dict[str, Model | None] = {}
        self._doubts: dict[str, str] = {}

    @property
    def title(self) -> str:
        """Name and version."""
        return f"vllm {self._probe.identity.version}"

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._device

    def ask(self, questions: list[Question]) -> list[Answer]:
        """Answer questions, in their order.

        Raises:
            InputError: This vLLM cannot be asked at all.
        """
        self._find([question.model for question in questions])
        known = [question for question in questions if self._models[question.model] is not None]
        said = dict(zip((one.key for one in known), self._answers([self._wire(one) for one in known]), strict=True))
        self._weigh(known, said)
        return [said.get(question.key) or UnknownModel(question.model) for question in questions]

    def _answers(self, wired: list[base.Question]) -> list[base.Outcome]:
        if not wired:
            return []
        answers = self._probe.answer(wired)
        if self._probe.beyond:
            raise InputError(f"{self._probe.beyond}\nName another engine: {HOW}")
        return answers

    def _wire(self, question: Question, *, larger: bool = False) -> base.Question:
        model = self._models[question.model]
        assert model is not None
        folder = model.larger if larger else model.folder
        return base.Question(folder, question.arguments, question.entry, environment=question.environment)

    def _weigh(self, questions: Sequence[Question], said: dict[str, base.Outcome]) -> None:
        """Note whose answer may be another for the model itself; refusals are asked again with other sizes."""
        again: list[Question] = []
        for question in questions:
            model = self._models[question.model]
            assert model is not None
            self._doubts[question.key] = model.doubt
            answer = said[question.key]
            if model.doubt == STAND_IN and model.larger and isinstance(answer, base.Rejected) and _sizeless(answer):
                again.append(question)
        for question, other in zip(again, self._answers([self._wire(one, larger=True) for one in again]), strict=True):
            answer = said[question.key]
            if isinstance(other, base.Rejected) and isinstance(answer, base.Rejected) and _cause(answer) == _cause(other):
                self._doubts[question.key] = ""

    def _find(self, names: Sequence[str]) -> None:
        """Find models not looked for before; default configurations are asked for all at once."""
        waiting: dict[str, tuple[str, bool]] = {}
        for name in dict.fromkeys(names):
            if name in self._models:
                continue
            found = self._source.find(name)
            self._models[name] = Model(str(found.path)) if found else None
            kind = None if found else self._named.of(name)
            if kind is not None:
                waiting[name] = kind
        kinds = sorted({kind for kind, _ in waiting.values()})
        usual, larger = ((self._defaults(kinds, sizes) if kinds else {}) for sizes in (1, 2))
        for name, (kind, guessed) in waiting.items():
            if kind in usual:
                doubt = GUESSED if guessed else STAND_IN
                self._models[name] = Model(usual[kind], larger.get(kind, ""), doubt)

    def _defaults(self, kinds: Sequence[str], sizes: int) -> dict[str, str]:
        made = self._probe.default_configs(kinds, sizes=sizes)
        return {
            kind: str(self._source.put(config, "architecture", certain=False).path)
            for kind, config in made.items()
            if not isinstance(config, str)
        }

    def chain(self, question: Question) -> tuple[str, ...]:  # noqa: ARG002 -- the contract's signature
        """Nothing: vLLM does not say how a value came about."""
        return ()

    def doubt(self, question: Question) -> str:
        """Why the answer may be another for the model itself."""
        return self._doubts.get(question.key, "")

    def messages(self) -> tuple[str, ...]:
        """What the engine's source can refuse with."""
        return templates(Path(self._probe.installed.folder))

    def close(self) -> None:
        """End the engine's processes."""
        self._probe.close()


def _sizeless(answer: base.Rejected) -> bool:
    """Whether a refusal can hold for any sizes, and for any quantization of the checkpoint: it names none."""
    text = normalise(answer.message)
    return "<n>" not in text and "quant" not in text.lower()


def _cause(answer: base.Rejected) -> tuple[str, str]:
    return (normalise(answer.message), origin_file(answer.origin))
