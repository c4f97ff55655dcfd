"""An installed vLLM, asked through its probe; models that are not at hand are stood in for by their architecture."""

import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from staticfire.harness.check import architectures, command, constants, engine_args, frontend, standins, templates
from staticfire.harness.check.engines import Asked
from staticfire.harness.check.messages import normalise, origin_file
from staticfire.harness.check.negative import Template
from staticfire.harness.check.question import Answer, Question, UnknownModel
from staticfire.harness.check.remember import T, remembered
from staticfire.harness.errors import InputError
from staticfire.harness.files import default_cache_dir
from staticfire.harness.models import devices
from staticfire.harness.probe import base
from staticfire.harness.probe.models import ModelSource
from staticfire.harness.probe.registry import Options, open_probe
from staticfire.harness.probe.vllm import named_code, variables
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.scan.base import Constant

STAND_IN: Final = "the configuration of the model is not at hand; that of its architecture stands in"
CODE: Final = "names code, which is not loaded; the engine was asked without it"
DRAFT: Final = "the configuration of the speculative model is not at hand"
GUESSED: Final = "the architecture of the model is guessed from its name"
HOW: Final = "staticfire check PATH --engine vllm --engine-python /path/to/bin/python"

FILES: Final = re.compile(
    r"invalid repository id or local directory|params\.json|config file for|checkpoints? needs? an?\b|in its hf config|"
    r"no such file|cannot find|could not (?:find|load|locate)|failed to (?:load|find)|tokenizer must be",
    re.IGNORECASE,
)
"""Refusals for want of a file that only the model itself has; they say nothing of what is typed."""
CONTEXT: Final = re.compile(r"max_model_len.*greater than the derived", re.DOTALL)
CONTEXT_KEYS: Final = frozenset({
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length", "model_max_length",
})  # fmt: skip
LONG: Final = 1 << 18
"""Context length of a stand-in, where its architecture's default is too short for what is typed."""
MAX_FRONT_END: Final = 12


@dataclass(frozen=True, slots=True)
class Model:
    """A model as the engine can be asked about it.

    Attributes:
        folder: Folder with a `config.json`.
        doubt: Why its answers may not be those of the model itself.
        others: Folders of further architectures that its name fits as well.
    """

    folder: str
    doubt: str = ""
    others: tuple[str, ...] = ()


class VllmEngine:
    """Answers for the vLLM of one interpreter."""

    def __init__(self, asked: Asked) -> None:
        """Look at the interpreter; nothing is started yet.

        Raises:
            InputError: No such device, no such interpreter, or no vLLM in it.
        """
        device = devices.find(asked.device)
        options = Options(
            device,
            asked.python,
            use_cache=asked.cache,
            processes=asked.processes,
            source=asked.source,
            identify_limit=asked.wait,
            say=asked.say,
        )
        try:
            probe = open_probe("vllm", options)
        except InputError as error:
            raise InputError(f"No engine to ask. {error}\nName one: {HOW}") from error
        assert isinstance(probe, VllmProbe)
        self._probe = probe
        self._keep = asked.cache
        self._device = device.name
        self._source = ModelSource(asked.model_configs)
        self._named = architectures.read(architectures.tables(asked.suite))
        none = _empty_folder()
        self._models: dict[str, Model | None] = {"": Model(str(none))}
        self._broken: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._larger: dict[str, str] = {}
        self._doubts: dict[str, str] = {}
        self._not_engine: set[str] = set()

    @property
    def title(self) -> str:
        """Name and version."""
        return f"vllm {self._probe.identity.version}"

    @property
    def versions(self) -> Mapping[str, str]:
        """Package -> version, of those in the engine's environment that suites ask about."""
        return self._probe.installed.versions

    @cached_property
    def constants(self) -> Mapping[str, Constant]:
        """What names of its classes stand for, read out of its source."""
        return constants.constants(self._read_source(constants, constants.read))

    @property
    def device(self) -> str:
        """Name of the device."""
        return self._device

    def ask(self, questions: list[Question]) -> list[Answer]:
        """Answer questions, in their order.

        Raises:
            InputError: This vLLM cannot be asked at all, or a configuration that the user supplies cannot be used.
        """
        self._find([name for question in questions for name in (question.model, *_drafts(question.arguments))])
        known = [question for question in questions if self._models[question.model] is not None]
        said = self._without_front_end(known)
        self._lengthen(known, said)
        self._ask_others(known, said)
        self._weigh(known, said)
        return [self._read(question, said.get(question.key)) for question in questions]

    def _read(self, question: Question, answer: base.Outcome | None) -> Answer:
        if answer is None:
            return UnknownModel(question.model, fault=self._broken.get(question.model, ""))
        if not isinstance(answer, base.Rejected):
            return answer
        model = self._models[question.model]
        if FILES.search(answer.message) or (model is not None and model.folder in answer.message):
            drafts = [name for name in _drafts(question.arguments) if self._models.get(name) is None]
            return UnknownModel(drafts[0] if drafts else question.model, "a file of the model is needed")
        stood_in = model is not None and model.doubt
        if stood_in and (why := standins.silent(question, answer, _drafts(question.arguments))):
            return UnknownModel(question.model, why)
        if question.entry == "VllmConfig" and (answer.kind == "field" or answer.origin == "pydantic"):
            # Values of a configuration built by hand can be objects that no plain value says.
            return base.Crashed(f"not to be said in plain values: {answer.message}")
        return replace(answer, values=tuple(self._by_name(question, seen) for seen in answer.values))

    def _by_name(self, question: Question, seen: base.Seen) -> base.Seen:
        """A value with the name of a model in place of the folder that it was put into for the engine."""
        if not isinstance(seen.value, str) or Path(seen.value).parent != self._source.folder:
            return seen
        drafts = _drafts(question.arguments) if seen.field.startswith("speculative.") else []
        return replace(seen, value=next(iter(drafts), question.model))

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
        return frozenset(self._read_source(frontend, lambda folder: sorted(frontend.names(folder))))

    def _answers(self, wired: list[base.Question]) -> list[base.Outcome]:
        if not wired:
            return []
        answers = self._probe.answer(wired)
        if self._probe.beyond:
            raise InputError(f"{self._probe.beyond}\nName another engine: {HOW}")
        return answers

    def _wire(self, question: Question) -> base.Question:
        model = self._models[question.model]
        assert model is not None
        asked = named_code.without(question.arguments).arguments
        arguments = {name: self._draft(name, value) for name, value in asked.items()}
        if question.argv is not None:
            argv = command.edited(question.argv, question.arguments, arguments)
            return base.Question(model.folder, {}, question.entry, argv, question.environment)
        if question.entry == "serve":
            arguments = frontend.parsed({name: arguments[name] for name in arguments if name not in self._not_engine})
        return base.Question(model.folder, arguments, question.entry, environment=question.environment)

    def _draft(self, name: str, value: Any) -> Any:
        """A speculative configuration, with its model as a folder where that is at hand."""
        if name != "speculative_config" or not isinstance(value, Mapping):
            return value
        model = self._models.get(str(value.get("model")))
        return {**value, "model": model.folder} if model else value

    def _lengthen(self, questions: Sequence[Question], said: dict[str, base.Outcome]) -> None:
        """Ask again where only the context of a stand-in was too short: the model's own may be long enough."""
        again: list[Question] = []
        for question in questions:
            model, answer = self._models[question.model], said[question.key]
            if model and model.doubt and isinstance(answer, base.Rejected) and CONTEXT.search(answer.message):
                again.append(question)
        wired = [replace(self._wire(one), model=self._long(self._wire(one).model)) for one in again]
        said |= {question.key: answer for question, answer in zip(again, self._answers(wired), strict=True)}

    def _long(self, folder: str) -> str:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        return str(self._source.put(_lengthened(config), "architecture", certain=False).path)

    def _ask_others(self, questions: Sequence[Question], said: dict[str, base.Outcome]) -> None:
        """Ask again where a refusal may be that of the guess: what one architecture accepts that fits, stands."""
        waiting = [(one, iter(self._others(one))) for one in questions if isinstance(said[one.key], base.Rejected)]
        while True:
            asked = [(one, rest, folder) for one, rest in waiting if (folder := next(rest, None)) is not None]
            if not asked:
                return
            answers = self._answers([replace(self._wire(one), model=folder) for one, _, folder in asked])
            for (one, _, _), answer in zip(asked, answers, strict=True):
                if isinstance(answer, base.Accepted | base.Undecided):
                    said[one.key] = answer
            waiting = [(one, rest) for one, rest, _ in asked if isinstance(said[one.key], base.Rejected)]

    def _others(self, question: Question) -> tuple[str, ...]:
        model = self._models[question.model]
        return model.others if model else ()

    def _weigh(self, questions: Sequence[Question], said: dict[str, base.Outcome]) -> None:
        """Note whose answer may be another for the model itself; refusals are asked again with other sizes."""
        again: list[Question] = []
        for question in questions:
            model = self._models[question.model]
            assert model is not None
            drafts = [draft.doubt if draft else DRAFT for draft in map(self._models.get, _drafts(question.arguments))]
            code = named_code.without(question.arguments).left_out
            named = f"{', '.join(code)} {CODE}" if code else ""
            self._doubts[question.key] = next(filter(None, [named, model.doubt, *drafts]), "")
            answer = said[question.key]
            alone = model.doubt == STAND_IN and not drafts and not code
            if alone and isinstance(answer, base.Rejected) and _sizeless(answer):
                again.append(question)
        wired = self._enlarged(again)
        for key, other in zip(wired, self._answers([*wired.values()]), strict=True):
            if _cause(said[key]) == _cause(other):
                self._doubts[key] = ""

    def _enlarged(self, questions: Sequence[Question]) -> dict[str, base.Question]:
        """The questions by key about stand-ins of other sizes, where there are such."""
        kinds = {self._kinds[question.model] for question in questions if question.model in self._kinds}
        missing = sorted(kinds - set(self._larger))
        if missing:
            self._larger |= {**dict.fromkeys(missing, ""), **self._defaults(missing, 2)}
        return {
            question.key: replace(self._wire(question), model=folder)
            for question in questions
            if (folder := self._larger.get(self._kinds.get(question.model, ""), ""))
        }

    def _find(self, names: Sequence[str]) -> None:
        """Find models not looked for before; default configurations are asked for all at once."""
        waiting: dict[str, architectures.Fit] = {}
        looked_up, broken = self._source.look_up(name for name in names if name not in self._models)
        self._broken |= broken
        for name, found in looked_up.items():
            self._models[name] = Model(str(found.path)) if found else None
            fit = None if found or name in broken else self._named.of(name)
            if fit is not None:
                waiting[name] = fit
        kinds = sorted({kind for fit in waiting.values() for kind in fit.kinds})
        if not kinds:
            return
        usual = self._defaults(kinds, 1)
        sound = self._sound(usual)
        for name, fit in waiting.items():
            if fitting := [kind for kind in fit.kinds if kind in sound]:
                self._kinds[name] = fitting[0]
                first, *others = (usual[kind] for kind in fitting)
                self._models[name] = Model(first, GUESSED if fit.guessed else STAND_IN, tuple(others))

    def _defaults(self, kinds: Sequence[str], sizes: int) -> dict[str, str]:
        made = self._probe.default_configs(kinds, sizes=sizes)
        # One that failed is asked for once more: its process may have died, and a model would go unjudged for it.
        failed = [kind for kind in kinds if isinstance(made[kind], str)]
        if failed:
            made = {**made, **self._probe.default_configs(failed, sizes=sizes)}
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
        died = [
            kind for kind, one in zip(kinds, answers, strict=True) if isinstance(one, base.Crashed) and not one.lasting
        ]
        answers += self._answers([base.Question(folders[kind]) for kind in died])
        asked = zip([*kinds, *died], answers, strict=True)
        return {kind for kind, answer in asked if isinstance(answer, base.Accepted | base.Undecided)}

    def chain(self, question: Question) -> tuple[str, ...]:  # noqa: ARG002 -- the contract's signature
        """Nothing: vLLM does not say how a value came about."""
        return ()

    def withheld(self, question: Question) -> Mapping[str, str]:
        """Variables that only would make the engine do something, or change nothing."""
        found = {name: why for name in question.environment if (why := variables.why_withheld(name))}
        if variables.validated(question.arguments, question.argv):  # then the name decides, which the engine is told
            found = {name: why for name, why in found.items() if why != variables.NO_VERDICT}
        return found

    def doubt(self, question: Question) -> str:
        """Why the answer may be another for the model itself."""
        return self._doubts.get(question.key, "")

    def keywords(self, question: Question) -> frozenset[str]:
        """The engine's arguments, and of a command line the server's own; none of a configuration built by hand."""
        if question.entry == "VllmConfig":
            return frozenset()
        own = frozenset(self._read_source(engine_args, lambda folder: sorted(engine_args.names(folder))))
        return own if question.argv is None else own | self._front_end

    def messages(self) -> tuple[Template, ...]:
        """What the engine's source can refuse with."""
        rows = self._read_source(
            templates, lambda folder: [[one.exception, one.text] for one in templates.read(folder)]
        )
        return tuple(Template(exception, text) for exception, text in rows)

    def _read_source(self, reader: ModuleType, read: Callable[[Path], list[T]]) -> list[T]:
        """What is to be read in the engine's source; kept with the answers, where those are kept."""
        installed = self._probe.installed
        if not self._keep:
            return read(Path(installed.folder))
        return remembered(reader, installed.digest, lambda: read(Path(installed.folder)))

    def close(self) -> None:
        """End the engine's processes."""
        self._probe.close()


def _empty_folder() -> Path:
    """The folder of no model at all; that it can be made says that models' configurations can be put beside it."""
    cache = default_cache_dir()
    folder = cache / "probe" / "models" / "none"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder.parent):
            pass
    except OSError as error:
        raise InputError(
            f"The cache folder {cache}: cannot write there ({error.strerror or error}); name another one with the "
            "variable STATICFIRE_CACHE."
        ) from error
    return folder


def _drafts(arguments: Mapping[str, Any]) -> list[str]:
    """Models named inside the arguments."""
    speculative = arguments.get("speculative_config")
    model = speculative.get("model") if isinstance(speculative, Mapping) else None
    return [model] if isinstance(model, str) and "/" in model else []


def _sizeless(answer: base.Rejected) -> bool:
    """Whether a refusal can hold for any sizes, and for any quantization of the checkpoint: it names none."""
    text = normalise(answer.message)
    return "<n>" not in text and "quant" not in text.lower()


def _cause(answer: base.Outcome) -> object:
    """Equal for refusals with one cause; another answer equals none."""
    return (normalise(answer.message), origin_file(answer.origin)) if isinstance(answer, base.Rejected) else object()


def _lengthened(config: Any) -> Any:
    if isinstance(config, dict):
        return {key: LONG if key in CONTEXT_KEYS else _lengthened(value) for key, value in config.items()}
    return config
