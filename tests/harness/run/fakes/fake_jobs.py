"""Jobs that misbehave on demand: a cell's `do` axis says how. Imported by workers through PYTHONPATH."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.job import JobResult


def do(cell, context):
    log(f"start {cell.id} {os.getpid()}")
    action, _, argument = str(cell.axes["do"]).partition(":")
    return ACTIONS[action](argument)


def log(line):
    if path := os.environ.get("FAKE_LOG"):
        with Path(path).open("a") as file:
            file.write(f"{line}\n")


def wait(seconds):
    time.sleep(float(seconds))
    return JobResult(verdict="passed", detail={"slept": float(seconds)})


def variable(name):
    return JobResult(verdict="passed", detail={"value": os.environ.get(name), "pid": os.getpid()})


def fail(_):
    return JobResult(verdict="failed", detail={"grade": "wrong", "first_difference": {"position": 3, "got": 7}})


def refuse(rule):
    return JobResult(verdict="refused as expected", rule=rule)


def throw(name):
    raise {"value": ValueError, "exit": SystemExit, "interrupt": KeyboardInterrupt}[name]("thrown on purpose")


def leave(code):
    sys.stdout.write("last words\n")
    sys.stdout.flush()
    os._exit(int(code))


def kill(name):
    os.kill(os.getpid(), getattr(signal, name))
    return wait("30")


def crash(_):
    ctypes.string_at(0)


def hold_the_interpreter(_):
    ctypes.PyDLL(None).sleep(60)


def chatter(lines):
    for number in range(int(lines)):
        sys.stdout.write(f"line {number} {'x' * 100}\n")
    return JobResult(verdict="passed")


def garbage(_):
    for descriptor in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"{ no message\n")
    return wait("30")


def close_everything(_):
    os.closerange(3, 64)
    return wait("30")


def family(_):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"])
    log(f"child {child.pid}")
    return wait("120")


def odd(_):
    detail: dict[Any, Any] = {"nan": float("nan"), "bytes": b"\xff", "lone": "\ud800", (1, 2): {3}}
    return JobResult(verdict="passed", detail=detail)


def bogus(_):
    verdict: Any = "splendid"
    return JobResult(verdict=verdict)


def environment(_):
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "PYTHONSAFEPATH", "TOKENIZERS_PARALLELISM"]
    names += ["HF_HUB_OFFLINE"]
    return JobResult(verdict="passed", detail={name: os.environ.get(name) for name in names})


def die_when_idle(_):
    """The worker dies of this cell, but after its verdict, when it is about to say that it took the next."""
    worker: Any = sys.modules["__main__"]
    worker._send = lambda *_: os._exit(5)
    return JobResult(verdict="passed")


ACTIONS = {
    "variable": variable,
    "pass": lambda _: JobResult(verdict="passed"),
    "nothing": lambda _: None,
    "huge": lambda _: JobResult(verdict="passed", detail={str(n): "x" * 10_000 for n in range(200)}),
    "die_when_idle": die_when_idle,
    "wait": wait,
    "fail": fail,
    "refuse": refuse,
    "throw": throw,
    "leave": leave,
    "kill": kill,
    "crash": crash,
    "hold": hold_the_interpreter,
    "chatter": chatter,
    "garbage": garbage,
    "close": close_everything,
    "family": family,
    "odd": odd,
    "bogus": bogus,
    "environment": environment,
}


def by_seed(cell, context):
    """For matrices from files, whose axes must be engine keywords: FAKE_ACTIONS says what a seed means."""
    actions = json.loads(os.environ.get("FAKE_ACTIONS", "{}"))
    default = os.environ.get("FAKE_DEFAULT", "pass")
    return do(Cell(cell.id, {"do": actions.get(str(cell.axes["seed"]), default)}, "valid"), context)
