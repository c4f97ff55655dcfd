"""An installed vLLM, asked through its probe; models that are not at hand are stood in for by their architecture."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from staticfire.harness.check import architectures, frontend
from staticfire.harness.check.engines import Asked
from staticfire.harness.check.messages import normalise, origin_file
from staticfire.harness.check.question import Answer, Question, UnknownModel
from staticfire.harness.check.templates import templates
from staticfire.harness.errors import InputError
from staticfire.harness.models import devices
from staticfire.harness.probe import base
from staticfire.harness.probe.cache import cache_folder
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.registry import Options, open_probe
from staticfire.harness.probe.vllm.probe import VllmProbe

STAND_IN: Final = "the configuration of the model is not at hand; that of its architecture stands in"
GUESSED: Final = "the architecture of the model is guessed from its name"
HOW: Final = "staticfire check PATH --engine vllm --engine-python /path/to/bin/python"

FILES: Final = re.compile(
    r"invalid repository id or local directory|params\.json|config file for|checkpoints? needs? an?\b|in its hf config|"
    r"no such file|cannot find|could not (?:find|load|locate)|failed to (?:load|find)|tokenizer must be",
    re.IGNORECASE,
)
"""Refusals for want of a file that only the model itself has; they say nothing of what is typed."""
MAX_FRONT_END: Final = 12


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
        none = cache_folder() / "probe" / "models" / "none"
        none.mkdir(parents=True, exist_ok=True)
        self._models: dict[str, Model | None] = {"": Model(str(none))}
        self._doubts: dict[str, str] = {}
        self._not_engine: set[str] = set()

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
        self._find([name for question in questions for name in (question.model, *_drafts(question.arguments))])
        known = [question for question in questions if self._models[question.model] is not None]
        said = self._without_front_end(known)
        self._weigh(known, said)
        return [self._read(question, said.get(question.key)) for question in questions]

    def _read(self, question: Question, answer: base.Outcome | None) -> Answer:
        if answer is None:
            return UnknownModel(question.model)
        model = self._models[question.model]
        if isinstance(answer, base.Rejected) and (
            FILES.search(answer.message) or (model and model.folder in answer.message)
        ):
            drafts = [name for name in _drafts(question.arguments) if self._models.get(name) is None]
            return UnknownModel(drafts[0] if drafts else question.model, "a file of the model is needed")
        return answer

    def _without_front_end(self, questions: Sequence[Question]) -> dict[str, base.Outcome]:
        """Answers by key. Flags of a server that only its front end takes are found out and left out."""
        said: dict[str, base.Outcome] = {}
        waiting = list(questions)
        for _ in range(MAX_FRONT_END):
            answers = self._answers([self._wire(one) for one in waiting])
            said |= {question.key: answer for question, answer in zip(waiting, answers, strict=True)}
            waiting = [question for question in waiting if self._is_front_end(question, said[question.key])]
            if not waiting:
                break
        return said

    def _is_front_end(self, question: Question, answer: base.Outcome) -> bool:
        """Whether an answer only says that a keyword is the front end's; such keywords are remembered."""
        if question.entry != "serve" or not isinstance(answer, base.Rejected):
            return False
        name = frontend.unexpected(answer.message)
        if not name or name not in self._front_end:
            return False
        self._not_engine.add(name)
        return True

    @cached_property
    def _front_end(self) -> frozenset[str]:
        return frontend.names(Path(self._probe.installed.folder))

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
        arguments = {name: self._draft(name, value) for name, value in question.arguments.items()}
        if question.entry == "serve":
            arguments = frontend.parsed({name: arguments[name] for name in arguments if name not in self._not_engine})
        folder = model.larger if larger else model.folder
        return base.Question(folder, arguments, question.entry, environment=question.environment)

    def _draft(self, name: str, value: Any) -> Any:
        """A speculative configuration, with its model as a folder where that is at hand."""
        if name != "speculative_config" or not isinstance(value, Mapping):
            return value
        model = self._models.get(str(value.get("model")))
        return {**value, "model": model.folder} if model else value

    def _weigh(self, questions: Sequence[Question], said: dict[str, base.Outcome]) -> None:
        """Note whose answer may be another for the model itself; refusals are asked again with other sizes."""
        again: list[Question] = []
        for question in questions:
            model = self._models[question.model]
            assert model is not None
            drafts = [draft.doubt for name in _drafts(question.arguments) if (draft := self._models.get(name))]
            self._doubts[question.key] = next(filter(None, [model.doubt, *drafts]), "")
            answer = said[question.key]
            if model.doubt == STAND_IN and model.larger and isinstance(answer, base.Rejected) and _sizeless(answer):
                again.append(question)
        for question, other in zip(again, self._answers([self._wire(one, larger=True) for one in again]), strict=True):
            answer = said[question.key]
            if (
                isinstance(other, base.Rejected)
                and isinstance(answer, base.Rejected)
                and _cause(answer) == _cause(other)
            ):
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
        if not kinds:
            return
        usual, larger = self._defaults(kinds, 1), self._defaults(kinds, 2)
        sound = self._sound(usual)
        for name, (kind, guessed) in waiting.items():
            if kind in sound:
                doubt = GUESSED if guessed else STAND_IN
                self._models[name] = Model(usual[kind], larger.get(kind, ""), doubt)

    def _defaults(self, kinds: Sequence[str], sizes: int) -> dict[str, str]:
        made = self._probe.default_configs(kinds, sizes=sizes)
        return {
            kind: str(self._source.put(config, "architecture", certain=False).path)
            for kind, config in made.items()
            if not isinstance(config, str)
        }

    def _sound(self, folders: Mapping[str, str]) -> set[str]:
        """Architectures whose default configuration the engine accepts when nothing else is typed.

        One that it refuses as it is can stand in for no model: every refusal would be its own.
        """
        kinds = sorted(folders)
        answers = self._answers([base.Question(folders[kind]) for kind in kinds])
        return {kind for kind, answer in zip(kinds, answers, strict=True) if isinstance(answer, base.Accepted)}

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


def _drafts(arguments: Mapping[str, Any]) -> list[str]:
    """Models named inside the arguments."""
    speculative = arguments.get("speculative_config")
    model = speculative.get("model") if isinstance(speculative, Mapping) else None
    return [model] if isinstance(model, str) and "/" in model else []


def _sizeless(answer: base.Rejected) -> bool:
    """Whether a refusal can hold for any sizes, and for any quantization of the checkpoint: it names none."""
    text = normalise(answer.message)
    return "<n>" not in text and "quant" not in text.lower()


def _cause(answer: base.Rejected) -> tuple[str, str]:
    return (normalise(answer.message), origin_file(answer.origin))
