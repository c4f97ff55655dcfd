"""The loop: hello, then one answer to each question, in JSON lines on pipes that nothing else writes to."""

import contextlib
import functools
import importlib
import importlib.metadata
import json
import os
import signal
import sys
import time
from typing import Any, TextIO

from .architectures import default_config, list_architectures
from .device import Facts, install_platform, present
from .guard import Guard
from .inspection import Inspection
from .judge import Judge, scratch_environment
from .operators import present_operators
from .packages import Packages
from .standin import PostImport, StandInFinder
from .verdict import crashed
from .waiting import skip_pauses


def watch(lifeline: int) -> None:
    """Fork a process that ends this one and its children once the client is gone, however hung they are."""
    group = os.getpid()
    if os.fork():
        os.close(lifeline)
        return
    for number in range(256):
        if number != lifeline:
            with contextlib.suppress(OSError):
                os.close(number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while os.read(lifeline, 1):
            pass
    finally:
        os.killpg(group, signal.SIGKILL)


def prepare(facts: Facts, missing: str = "") -> tuple[StandInFinder, PostImport]:
    """Hook the imports of this process, so that the device is presented; nothing is imported yet."""
    finder, hooks = StandInFinder(), PostImport()
    finder.missing.update(name for name in missing.split(",") if name)
    sys.meta_path.insert(0, finder)
    sys.meta_path.insert(0, hooks)
    # The engine lists the environment's plugins for every configuration; nothing is installed meanwhile.
    metadata: Any = importlib.metadata
    metadata.entry_points = functools.lru_cache(maxsize=None)(metadata.entry_points)
    hooks.after("torch", present_operators)
    present(facts, hooks)
    return finder, hooks


def child(facts: dict[str, Any]) -> None:
    """Present the device in a child process of the engine; called by its `sitecustomize`."""
    finder, hooks = prepare(Facts(facts), os.environ.get("STATICFIRE_PROBE_MISSING", ""))
    finder._lenient = True  # noqa: SLF001 -- the child inspects one class and ends
    read_facts = Facts(facts)
    hooks.after("vllm.model_executor.models.registry", lambda _: install_platform(read_facts))


def main(settings: dict[str, Any], questions: int, answers: int, lifeline: int) -> None:
    """Serve until the client closes its end.

    Args:
        settings: `device` (see `Facts`), `cache` and `scratch` (folders), `child_path`, `source`.
        questions: File descriptor to read from.
        answers: File descriptor to write to.
        lifeline: File descriptor whose end of file means that the client is gone.
    """
    watch(lifeline)
    started = time.monotonic()
    facts = Facts(settings["device"])
    if facts.type == "cpu":
        os.environ["VLLM_TARGET_DEVICE"] = "cpu"
    scratch_environment(settings["cache"], settings["scratch"])
    finder, _ = prepare(facts)
    skip_pauses()
    guard = Guard([settings["cache"], settings["scratch"], settings["child_path"]])
    with os.fdopen(questions, encoding="utf-8") as asked, os.fdopen(answers, "w", encoding="utf-8") as told:
        try:
            judge, inspection, hello = _start(facts, finder, settings)
        except BaseException as error:  # noqa: BLE001 -- said plainly to the client, whatever it is
            _tell(told, {"beyond": crashed(error)["detail"], "absent": isinstance(error, (ImportError, OSError))})
            return
        guard.install()
        _tell(told, {**hello, "seconds": round(time.monotonic() - started, 2)})
        for line in asked:
            question = json.loads(line)
            _tell(told, {"id": question["id"], **_answer(question, judge, inspection, guard)})


def _start(facts: Facts, finder: StandInFinder, settings: dict[str, Any]) -> tuple[Judge, Inspection, dict[str, Any]]:
    engine = importlib.import_module("vllm")
    platform = install_platform(facts)
    inspection = Inspection(finder, settings["child_path"], settings.get("source", ""))
    inspection.install()
    importlib.import_module("vllm.engine.arg_utils")
    hello = {
        "engine": "vllm",
        "version": engine.__version__,
        "package": str(next(iter(engine.__path__), "")),
        "python": sys.version.split()[0],
        "torch": importlib.import_module("torch").__version__,
        "transformers": _version("transformers"),
        "platform": type(platform).__mro__[1].__name__,
        "stood_in": dict(finder.failed),
    }
    return Judge(facts, platform, inspection, Packages(finder, facts.type)), inspection, hello


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _answer(question: dict[str, Any], judge: Judge, inspection: Inspection, guard: Guard) -> dict[str, Any]:
    try:
        wanted = question["want"]
        if wanted == "ask":
            with guard.watch(question):
                answer = judge.ask(question)
            if guard.refused:
                detail = f"not asked to the end: it would {guard.refused[0]}"
                return {"outcome": "crashed", "detail": detail, "last": True}  # the engine may remember what it began
            return answer
        if wanted == "architectures":
            return {"architectures": list_architectures(bool(question.get("inspect")), inspection.failed)}
        if wanted == "default config":
            return default_config(question["architecture"], int(question.get("sizes", 1)))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 -- one bad question must not end the others
        return crashed(error)
    return {"outcome": "crashed", "detail": f"the agent knows no question {wanted!r}"}


def _tell(told: TextIO, answer: dict[str, Any]) -> None:
    told.write(json.dumps(answer, default=str) + "\n")
    told.flush()
