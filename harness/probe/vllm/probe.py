"""Ask an installed vLLM: from the cache where it has answered before, else from processes started when needed."""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from staticfire.engine.config.device import Device
from staticfire.harness.errors import InputError
from staticfire.harness.files import default_cache_dir
from staticfire.harness.probe.base import (
    Accepted,
    Crashed,
    EngineIdentity,
    Note,
    NotKnown,
    Outcome,
    Question,
    Rejected,
    Seen,
    Settled,
    Undecided,
)
from staticfire.harness.probe.cache import AnswerCache, key_of
from staticfire.harness.probe.pool import Pool
from staticfire.harness.probe.vllm import variables
from staticfire.harness.probe.vllm.facts import facts
from staticfire.harness.probe.vllm.identity import Installed, find
from staticfire.harness.probe.vllm.process import (
    AGENT,
    EngineBeyondError,
    EngineDiedError,
    EngineProcess,
    EngineSlowError,
    Limits,
)


class VllmProbe:
    """Answers for the vLLM of one interpreter, on one presented device.

    Use it as a context manager, or call `close`: it may own processes.
    """

    def __init__(
        self,
        python: str,
        device: Device,
        *,
        answers: AnswerCache | None = None,
        use_cache: bool = True,
        processes: int = 2,
        limits: Limits | None = None,
        source: Path | None = None,
        identify_limit: float = 20,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Look at the interpreter; nothing is imported there yet.

        Args:
            python: The interpreter that has vLLM, or a script that starts it.
            device: What to present.
            answers: The cache of answers, by default the one in the cache folder.
            use_cache: False to ask everything anew and keep nothing.
            processes: Most engine processes at a time.
            limits: How long to wait.
            source: A tree with the engine's sources, built or not, in place of what is installed.
            identify_limit: Seconds to wait for the interpreter to say what it has.
            say: Told what is waited for, when that takes long.

        Raises:
            InputError: No such interpreter, or no vLLM in it.
        """
        self.installed: Installed = find(python, source=source, limit=identify_limit, say=say)
        self._say = say
        self.device = device
        self._facts = facts(device)
        self._limits = limits or Limits()
        self._cache = (answers or AnswerCache()) if use_cache else None
        self._base_key = {
            "engine": self.installed.digest,
            "agent": agent_digest(),
            "device": self._facts,
        }
        self._pool = Pool(self._start, EngineDiedError, size=processes)
        self.beyond: str | None = None

    def __enter__(self) -> Self:
        """Nothing is started."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what was started."""
        self.close()

    @property
    def identity(self) -> EngineIdentity:
        """Which vLLM answers."""
        return EngineIdentity("vllm", self.installed.version, self.installed.digest, self.installed.folder)

    @property
    def folder(self) -> Path:
        """Where this engine, on this kind of device, may keep its own caches."""
        return default_cache_dir() / "probe" / f"vllm-{self.installed.digest[:12]}-{self.device.name}"

    def answer(self, questions: Sequence[Question]) -> list[Outcome]:
        """Judge configurations; see `EngineProbe.answer`."""
        unsayable = {index: why for index, one in enumerate(questions) if (why := _unsayable(one)) is not None}
        asked = [question for index, question in enumerate(questions) if index not in unsayable]
        said = iter(self._answered(asked))
        return [unsayable[index] if index in unsayable else next(said) for index in range(len(questions))]

    def _answered(self, questions: Sequence[Question]) -> list[Outcome]:
        keys = [self._key(question) for question in questions]
        known = self._cache.get(keys) if self._cache else {}
        first = {key: index for index, key in reversed(list(enumerate(keys))) if key not in known}
        unknown = [questions[index] for index in sorted(first.values())]
        said = self._asked([_wire(question) for question in unknown], [question.model for question in unknown])
        fresh = {keys[index]: outcome for index, outcome in zip(sorted(first.values()), said, strict=True)}
        if self._cache and fresh:
            self._cache.put(fresh)
        return [known[key] if key in known else fresh[key] for key in keys]

    def ask(self, question: Question) -> Outcome:
        """Judge one configuration."""
        return self.answer([question])[0]

    def architectures(self, *, inspect: bool = False) -> dict[str, dict[str, Any]]:
        """The architectures of the engine's registry.

        Args:
            inspect: Also say of each whether it is `hybrid`, `attention_free` and `generates`, or why it `failed`.

        Raises:
            InputError: The engine cannot be asked.
        """
        answer = self._pool.ask([{"want": "architectures", "inspect": inspect}], [""])[0]
        if isinstance(answer, Exception):
            raise InputError(f"vLLM {self.installed.version} cannot be asked: {answer}") from answer
        found = answer.get("architectures")
        if not isinstance(found, dict):
            raise InputError(f"vLLM {self.installed.version} cannot be asked: {answer.get('detail')}")
        return found

    def default_configs(self, architectures: Sequence[str], *, sizes: int = 1) -> dict[str, dict[str, Any] | str]:
        """Make a configuration of each architecture from its name alone, in the engine's environment.

        Args:
            architectures: Class names.
            sizes: 1 for the default sizes, 2 for twice the widths.

        Returns:
            Architecture -> the mapping of a config.json, or why there is none.
        """
        names = list(dict.fromkeys(architectures))
        keys = {name: self._config_key(name, sizes) for name in names}
        known = self._cache.get(keys.values()) if self._cache else {}
        missing = [name for name in names if keys[name] not in known]
        wanted = [{"want": "default config", "architecture": name, "sizes": sizes} for name in missing]
        said = self._pool.ask(wanted, ["default config"] * len(wanted)) if wanted else []
        fresh = {keys[name]: _config_outcome(answer) for name, answer in zip(missing, said, strict=True)}
        if self._cache and fresh:
            self._cache.put(fresh)
        outcomes = {name: known.get(keys[name]) or fresh[keys[name]] for name in names}
        return {
            name: dict(outcome.resolved) if isinstance(outcome, Accepted) else str(getattr(outcome, "detail", ""))
            for name, outcome in outcomes.items()
        }

    def _config_key(self, architecture: str, sizes: int) -> str:
        return key_of({**self._base_key, "want": "default config", "architecture": architecture, "sizes": sizes})

    def close(self) -> None:
        """End all processes and close the cache."""
        self._pool.close()
        if self._cache:
            self._cache.close()

    def _start(self) -> EngineProcess:
        if self.beyond is not None:
            raise EngineDiedError(self.beyond)
        try:
            prune(self.folder)
            installed = self.installed
            return EngineProcess(
                installed.python, self._facts, self.folder, self._limits, source=installed.source, say=self._say
            )
        except EngineBeyondError as error:
            self.beyond = self._why_beyond(error)
            raise EngineDiedError(self.beyond) from error
        except EngineSlowError as error:
            # It starts no quicker the next time, and each try costs the whole limit.
            self.beyond = f"vLLM {self.installed.version} does not start: {error}"
            raise EngineDiedError(self.beyond) from error

    def _why_beyond(self, error: EngineBeyondError) -> str:
        version, python = self.installed.version, self.installed.python
        if not error.absent:
            return f"vLLM {version} is beyond this probe: {error}"
        tried = f"{python} -c 'import vllm'"
        return f"vLLM {version} cannot be imported: {error}. Mend its environment until this works: {tried}"

    def _asked(self, questions: Sequence[Mapping[str, Any]], groups: Sequence[str]) -> list[Outcome]:
        return [_outcome(answer) for answer in self._pool.ask(questions, groups)] if questions else []

    def _key(self, question: Question) -> str:
        return key_of({**self._base_key, **_wire(question), "model": model_digest(question.model)})


def _wire(question: Question) -> dict[str, Any]:
    said: dict[str, Any] = {"want": "ask", "model": question.model, "entry": question.entry}
    if question.argv is not None:
        said["argv"] = list(question.argv)
    else:
        said["arguments"] = dict(question.arguments)
    if environment := variables.passed(question.environment):
        said["environment"] = environment
    if variables.validated(question.arguments, question.argv):
        said["names"] = variables.only_named(question.environment)
    return said


def _unsayable(question: Question) -> Crashed | None:
    """Why a question cannot be handed to another process, if it cannot: it holds what JSON has no word for."""
    try:
        json.dumps(_wire(question))
    except (TypeError, ValueError, RecursionError) as error:
        return Crashed(f"the arguments cannot be handed to the engine: {error}", lasting=True)
    return None


def _outcome(answer: dict[str, Any] | Exception) -> Outcome:
    if isinstance(answer, Exception):
        return Crashed(str(answer))
    notes = tuple(Note(note["message"], note["origin"]) for note in answer.get("notes", ()))
    match answer.get("outcome"):
        case "accepted":
            room = answer["capacity"]
            capacity = NotKnown(room) if isinstance(room, str) else Settled(room)
            return Accepted(answer["resolved"], answer["runtime"], notes, capacity)
        case "undecided":
            return Undecided(answer["resolved"], NotKnown(answer["because"]), notes)
        case "rejected":
            return Rejected(
                answer["kind"],
                answer["message"],
                answer["origin"],
                phase=answer["phase"],
                notes=notes,
                values=tuple(Seen(one["field"], one["value"], one["default"]) for one in answer.get("values", ())),
                resolved=answer.get("resolved", {}),
                doubt=answer.get("doubt", ""),
            )
        case "crashed":
            return Crashed(answer["detail"], lasting=True)
        case _:
            return Crashed(f"the engine's process gave no verdict: {json.dumps(answer)[:200]}")


def _config_outcome(answer: dict[str, Any] | Exception) -> Outcome:
    """A default configuration in the form that the cache keeps."""
    if isinstance(answer, Exception):
        return Crashed(str(answer))
    if isinstance(answer.get("config"), dict):
        return Accepted(answer["config"])
    return Crashed(str(answer.get("unknown") or answer.get("detail")), lasting=True)


def prune(current: Path, keep: int = 16) -> None:
    """Mark an engine's folder as used, and remove those of engines that have not been asked for the longest time."""
    current.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        os.utime(current)
        folders = [path for path in current.parent.glob("vllm-*") if path.is_dir()]
        for path in sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)[keep:]:
            shutil.rmtree(path, ignore_errors=True)


@cache
def agent_digest() -> str:
    """Hash of the script that asks: another script may answer otherwise."""
    digest = hashlib.sha256()
    for path in sorted(AGENT.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def model_digest(folder: str) -> str:
    """Hash of a model's configuration: every small JSON file in its folder."""
    digest = hashlib.sha256()
    for path in sorted(Path(folder).glob("*.json")):
        if path.name.startswith("tokenizer") or path.name.endswith(".index.json"):
            continue
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
