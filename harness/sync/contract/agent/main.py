"""The loop in the engine's interpreter: what was found, then one answer to each question, in JSON lines on pipes."""

import importlib
import importlib.util
import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

import msgspec

from ....probe.vllm.agent.device import Facts  # noqa: TID252 -- loaded under a name of its own
from ....probe.vllm.agent.judge import scratch_environment  # noqa: TID252
from ....probe.vllm.agent.main import prepare, watch  # noqa: TID252
from .describe import fields
from .find import Applied, find
from .front import Front

ENGINE = "vllm"


class BeyondError(Exception):
    """This engine has no such response, or one that cannot be driven; the text says why."""


class Contract:
    """The engine's response and the method that applies it."""

    def __init__(self, applied: Applied) -> None:
        """Import what was found.

        Raises:
            BeyondError: It is not what it looked like.
        """
        module: Any = importlib.import_module(applied.module)
        kind = getattr(module, applied.class_name, None)
        message: Any = module
        for part in applied.message.split("."):
            message = getattr(message, part, None)
        if not isinstance(kind, type) or not isinstance(message, type):
            raise BeyondError(f"{applied.file}:{applied.line} decodes {applied.message}, which is no class there")
        self.applied, self.message, self.front = applied, message, Front(kind)
        try:
            self.fields = fields(message)
        except (AttributeError, TypeError, NameError) as error:
            raise BeyondError(f"{applied.message} declares no fields that can be read: {error}") from error

    def about(self) -> dict[str, Any]:
        """What was found, as data."""
        names = [field["name"] for field in self.fields]
        keys = [key for key in self.applied.keys if key in names]
        return {
            "response": self.message.__name__,
            "defined_at": _place(self.message),
            "applies": f"{self.applied.class_name}.{self.applied.method}",
            "applied_at": f"{self.applied.file}:{self.applied.line}",
            "lines": self.applied.lines,
            "key": keys[0] if keys else None,
            "fields": self.fields,
            "settable": self.front.settable,
            "defaults": self.front.defaults,
        }

    def deliver(self, typed: "dict[str, Any]", messages: "list[dict[str, Any]]") -> dict[str, Any]:
        """Let a new front end take over messages, one after another."""
        self.front.reset(typed)
        states = [self.front.state()]
        apply = getattr(self.front.instance, self.applied.method)
        for message in messages:
            try:
                apply(msgspec.msgpack.encode(message))
            except Exception as error:  # noqa: BLE001 -- whatever the engine raises is its answer
                return {"states": states, "error": _said(error), "kind": type(error).__name__}
            states.append(self.front.state())
        return {"states": states, "error": None}

    def round_trip(self, message: "dict[str, Any]") -> dict[str, Any]:
        """Which fields are not the same once they were on the wire."""
        try:
            sent: Any = msgspec.convert(message, type=self.message)
            got: Any = msgspec.msgpack.decode(msgspec.msgpack.encode(sent), type=self.message)
        except (msgspec.MsgspecError, TypeError, ValueError) as error:
            return {"lost": [], "error": _said(error), "kind": type(error).__name__}
        names = [field["name"] for field in self.fields]
        return {"lost": [name for name in names if getattr(sent, name) != getattr(got, name)], "error": None}


def main(settings: "dict[str, Any]", questions: int, answers: int, lifeline: int) -> None:
    """Serve until the client closes its end.

    Args:
        settings: `cache` and `scratch` (folders).
        questions: File descriptor to read from.
        answers: File descriptor to write to.
        lifeline: File descriptor whose end of file means that the client is gone.
    """
    watch(lifeline)
    scratch_environment(settings["cache"], settings["scratch"])
    prepare(Facts({"type": "cpu", "name": "none", "memory": 0}))
    with os.fdopen(questions, encoding="utf-8") as asked, os.fdopen(answers, "w", encoding="utf-8") as told:
        try:
            contract = _start()
        except BaseException as error:  # noqa: BLE001 -- said plainly to the client, whatever it is
            _tell(told, {"beyond": _said(error), "absent": isinstance(error, (ImportError, OSError))})
            return
        _tell(told, {"engine": ENGINE, "version": _version(), **contract.about()})
        for line in asked:
            question = json.loads(line)
            if question["want"] == "deliver":
                answer = {"delivered": [contract.deliver(run["typed"], run["messages"]) for run in question["runs"]]}
            else:
                answer = contract.round_trip(question["message"])
            _tell(told, {"id": question["id"], **answer})


def _start() -> Contract:
    found = importlib.util.find_spec(ENGINE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {ENGINE!r}")
    candidates = find(Path(next(iter(found.submodule_search_locations))))
    if not candidates:
        raise BeyondError(
            "no method in its source decodes an argument as a declared class and writes what it holds into the "
            "configuration that it keeps"
        )
    return Contract(candidates[0])


def _version() -> str:
    return str(getattr(sys.modules.get(ENGINE), "__version__", "of unknown version"))


def _place(kind: type) -> str:
    """Where a class is defined, relative to the package's parent."""
    try:
        file, line = inspect.getsourcefile(kind) or "", inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return kind.__module__
    root = Path(str(next(iter(sys.modules[ENGINE].__path__)))).resolve().parent
    path = Path(file).resolve()
    return f"{path.relative_to(root).as_posix() if path.is_relative_to(root) else path}:{line}"


def _said(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _tell(told: TextIO, answer: "dict[str, Any]") -> None:
    told.write(json.dumps(answer) + "\n")
    told.flush()
