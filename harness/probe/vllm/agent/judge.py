"""Answer one question: build the configuration as the engine's own entry point would, and say what became of it."""

import importlib
import os
from collections.abc import Sequence
from typing import Any

from .device import Facts
from .flatten import flatten
from .inspection import Inspection
from .notes import Notes
from .packages import Packages
from .refusal import NotKnownError, RefusedError
from .runtime import settle
from .sections import build
from .verdict import read, refused, rejected

# Devices that one configuration asks for, as the product of these.
_RANKS = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
)


# Where the configuration lies is ours, not the question's.
_PATHS = {"model.model", "model.tokenizer", "model.served_model_name", "model.model_weights"}


class _CaughtArguments(BaseException):
    """Carries the engine arguments out of `LLM(...)`, before it builds an engine."""

    def __init__(self, arguments: Any) -> None:
        super().__init__()
        self.arguments = arguments


class _ParserRefusalError(Exception):
    """The engine's command-line parser refuses."""


class Judge:
    """Asks the engine that is imported in this process."""

    def __init__(self, facts: Facts, platform: Any, inspection: Inspection, packages: Packages) -> None:
        """Judge for a device."""
        self._packages = packages
        self._facts = facts
        self._platform = platform
        self._inspection = inspection
        self._notes = Notes()
        self._volatile: dict[str, set[str]] = {}  # by entry point
        self._parser: Any = None
        self._hub: list[str] = []
        _watch_hub(self._hub)

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Judge one configuration.

        Args:
            question: `model` (a folder with a config.json), `arguments` (keywords), or `argv` (strings of a command
                line), `entry`: `LLM`, `EngineArgs`, `serve` or `VllmConfig`, `environment`, and `names` of variables
                whose values are withheld: those that the engine does not know are set to nothing.

        Returns:
            The answer as JSON can say it.
        """
        self._inspection.asked.clear()
        self._hub.clear()
        self._facts.count = max(self._facts.least_count, _ranks(question.get("arguments") or {}))
        before = dict(os.environ)
        os.environ.update(question.get("environment") or {})
        os.environ.update(dict.fromkeys(_strange(question.get("names") or ()), ""))
        try:
            with self._notes.collect():
                answer = self._answer(question)
        finally:
            os.environ.clear()
            os.environ.update(before)
        return {**answer, "notes": self._notes.plain()}

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            config = self._create(question)
        except _ParserRefusalError as error:
            return rejected("field", str(error), "command line", "front end")
        except Exception as error:  # noqa: BLE001 -- the engine can raise anything
            return self._refused(error, "front end", question)
        resolved = flatten(config)
        for name in self._volatile_fields(question, resolved):
            resolved.pop(name, None)
        try:
            runtime, capacity = settle(config, self._platform, self._facts, self._packages)
        except NotKnownError as error:
            return {"outcome": "undecided", "resolved": resolved, "because": str(error)}
        except RefusedError as error:
            typed = _last_parts(question.get("arguments") or {})
            said = refused(error.error, error.phase, typed)
            values = error.values or said["values"]
            return {**said, "values": values, "resolved": resolved, "doubt": error.doubt}
        except Exception as error:  # noqa: BLE001
            verdict = self._refused(error, "worker", question)
            if verdict["outcome"] == "rejected":
                return {**verdict, "resolved": resolved}
            return {"outcome": "undecided", "resolved": resolved, "because": verdict["detail"]}
        return {"outcome": "accepted", "resolved": resolved, "runtime": runtime, "capacity": capacity}

    def _refused(self, error: Exception, phase: str, question: dict[str, Any]) -> dict[str, Any]:
        if self._inspection.asked:
            name = self._inspection.asked[0]
            return {"outcome": "crashed", "detail": f"model class {name}: {self._inspection.failed[name]}"}
        if self._hub:
            return {"outcome": "crashed", "detail": f"needs the model hub: {self._hub[0]}"}
        return read(error, phase, _last_parts(question.get("arguments") or {}))

    def _volatile_fields(self, question: dict[str, Any], resolved: dict[str, Any]) -> set[str]:
        """Fields that differ when the same is asked twice: ports, times and identifiers."""
        entry = question.get("entry", "EngineArgs")
        if entry not in self._volatile:
            again = flatten(self._create(question))
            found = {name for name, value in resolved.items() if again.get(name, self) != value}
            self._volatile[entry] = found | _PATHS
        return self._volatile[entry]

    def _create(self, question: dict[str, Any]) -> Any:
        if question.get("entry") == "VllmConfig":
            return build(question["model"], question.get("arguments") or {})
        usage = importlib.import_module("vllm.usage.usage_lib").UsageContext
        serves = question.get("entry") == "serve"
        arguments = self._engine_arguments(question)
        return arguments.create_engine_config(usage.OPENAI_API_SERVER if serves else usage.LLM_CLASS)

    def _engine_arguments(self, question: dict[str, Any]) -> Any:
        module = importlib.import_module("vllm.engine.arg_utils")
        model, entry = question["model"], question.get("entry", "EngineArgs")
        if question.get("argv") is not None:
            return self._parsed(module, model, question["argv"])
        keywords = {"model": model, "skip_tokenizer_init": True, **(question.get("arguments") or {})}
        if entry == "LLM":
            return _through_llm(keywords)
        return (module.AsyncEngineArgs if entry == "serve" else module.EngineArgs)(**keywords)

    def _parsed(self, module: Any, model: str, argv: list[str]) -> Any:
        if self._parser is None:
            serve = importlib.import_module("vllm.entrypoints.cli.serve")
            utils = importlib.import_module("vllm.utils.argparse_utils")
            self._parser = serve.make_arg_parser(utils.FlexibleArgumentParser())

            def refuse(message: str) -> None:
                raise _ParserRefusalError(message)

            self._parser.error = refuse
        words = [word for word in argv if word != "--skip-tokenizer-init"]
        try:
            parsed = self._parser.parse_args([model, *words, "--skip-tokenizer-init"])
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            # What the parser makes of words before argparse sees them can fail on its own; the server then ends, too.
            raise _ParserRefusalError(f"{type(error).__name__}: {error}") from error
        except SystemExit as error:
            raise _ParserRefusalError(f"the command line ends the program (status {error.code})") from error
        self._facts.count = max(self._facts.least_count, _ranks(vars(parsed)))
        parsed.model = model
        return module.AsyncEngineArgs.from_cli_args(parsed)


def _strange(names: Sequence[str]) -> list[str]:
    """Variables that the engine does not know, and so reads nowhere; it may refuse them by their names."""
    if not names:
        return []
    known = getattr(importlib.import_module("vllm.envs"), "environment_variables", {})
    return [name for name in names if name not in known]


def _watch_hub(asked: list[str]) -> None:
    """Note whenever something is wanted that only the network or the hub's cache could give."""
    try:
        errors: Any = importlib.import_module("huggingface_hub.errors")
    except ImportError:
        return
    for name in ("LocalEntryNotFoundError", "OfflineModeIsEnabled"):
        kind = getattr(errors, name, None)
        if kind is not None:
            kind.__init__ = _noting(kind.__init__, asked)


def _noting(real: Any, asked: list[str]) -> Any:
    def __init__(self: Any, *arguments: Any, **keywords: Any) -> None:  # noqa: N807
        asked.append(str(arguments[0]).splitlines()[0][:300] if arguments else type(self).__name__)
        real(self, *arguments, **keywords)

    return __init__


def _last_parts(arguments: dict[str, Any]) -> dict[str, Any]:
    """Keywords without the sections they are in."""
    return {name.rpartition(".")[2]: value for name, value in arguments.items()}


def _ranks(arguments: dict[str, Any]) -> int:
    product = 1
    given = _last_parts(arguments)
    for name in _RANKS:
        value = given.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 1:
            product *= value
    return product


def _through_llm(keywords: dict[str, Any]) -> Any:
    """The arguments as `LLM.__init__` makes them of its keywords."""
    module = importlib.import_module("vllm.entrypoints.llm")

    def catch(_: Any, *arguments: Any, **named: Any) -> None:
        raise _CaughtArguments(named.get("engine_args", arguments[0] if arguments else None))

    engine = module.LLMEngine
    saved = engine.__dict__["from_engine_args"]
    engine.from_engine_args = classmethod(catch)
    try:
        module.LLM(**keywords)
    except _CaughtArguments as caught:
        return caught.arguments
    finally:
        engine.from_engine_args = saved
    raise RuntimeError("this engine's LLM(...) builds no engine from arguments")


def scratch_environment(cache: str, scratch: str) -> None:
    """Set what the engine reads from the environment, before it is imported."""
    os.environ.update(
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        VLLM_CACHE_ROOT=cache,
        VLLM_CONFIG_ROOT=scratch,
        VLLM_NO_USAGE_STATS="1",
        VLLM_LOGGING_LEVEL="WARNING",
        TRITON_CACHE_DIR=f"{scratch}/triton",
        TORCHINDUCTOR_CACHE_DIR=f"{scratch}/inductor",
        TOKENIZERS_PARALLELISM="false",
    )
