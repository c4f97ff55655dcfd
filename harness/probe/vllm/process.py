"""One engine process: asked in JSON lines on pipes of its own, given up on when it is slow, never left behind."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from staticfire.harness import isolation

AGENT: Final = Path(__file__).resolve().parent / "agent"
PROBE: Final = (AGENT, "main")
"""The probe's own agent: a folder, and the module below it whose `main` serves."""
_BOOT: Final = """
import sys
sys.path[:] = [p for p in sys.path if p]
import importlib, json, types
settings = json.loads(sys.argv[2])
sys.path[:0] = [p for p in [settings["source"]] if p]
package = types.ModuleType("_staticfire_agent")
package.__path__ = [sys.argv[1]]
sys.modules["_staticfire_agent"] = package
main = importlib.import_module("_staticfire_agent." + settings["module"]).main
main(settings, *map(int, sys.argv[3:6]))
"""
_CHILD: Final = """
import json, sys, types
package = types.ModuleType("_staticfire_agent")
package.__path__ = [{agent!r}]
sys.modules["_staticfire_agent"] = package
from _staticfire_agent.main import child
child({device!r})
"""
_TAIL_LINES: Final = 60
_TELL: Final = 20.0
"""Seconds of silence after which, again and again, a person is told what is waited for."""
# What would let the machine or the user's shell decide; a question names the variables that it is about.
_CLEARED: Final = ("VLLM_", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class EngineDiedError(Exception):
    """The process ended, hung or spoke nonsense; the text says which, and what it printed last."""

    slow = False


class EngineSlowError(EngineDiedError):
    """The process gave no answer in time."""

    slow = True


class EngineBeyondError(Exception):
    """The engine cannot be asked by this probe at all, whatever the question; the text says why.

    Attributes:
        absent: Whether something is missing in its environment, and the engine itself cannot be imported.
    """

    def __init__(self, why: str, *, absent: bool = False) -> None:
        """Say why."""
        super().__init__(why)
        self.absent = absent


@dataclass(frozen=True, slots=True)
class Limits:
    """How long to wait, in seconds.

    Attributes:
        start: For the engine's import.
        question: For one answer.
    """

    start: float = 300
    question: float = 60


class EngineProcess:
    """A running agent.

    Attributes:
        hello: What it said of itself.
    """

    hello: dict[str, Any]
    _process: subprocess.Popen[bytes]
    _listener: threading.Thread
    _questions: int
    _answers: int
    _lifeline: int

    def __init__(
        self,
        python: str,
        device: Mapping[str, Any],
        folder: Path,
        limits: Limits,
        *,
        source: str = "",
        say: Callable[[str], None] = lambda _: None,
        agent: tuple[Path, str] = PROBE,
    ) -> None:
        """Start the interpreter and wait until the engine is imported.

        Args:
            python: The interpreter that has the engine.
            device: The facts to present.
            folder: Where the engine may keep its caches; made if missing.
            limits: How long to wait.
            source: A folder that holds the engine's package, to be imported before any installed one.
            say: Told what is waited for, when that takes long.
            agent: What serves in there: a folder, and the module below it that has `main`.

        Raises:
            EngineBeyondError: The engine cannot be presented with a device.
            EngineDiedError: The interpreter ended or took too long.
        """
        self._limits = limits
        self._say = say
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._number = 0
        self._buffer = b""
        folder = folder.absolute()  # the engine runs in a folder below it
        scratch, child = folder / "scratch", folder / "child"
        for path in (scratch, child):
            path.mkdir(parents=True, exist_ok=True)
        sitecustomize = _CHILD.format(agent=str(AGENT), device=dict(device))
        _write_once(child / "sitecustomize.py", sitecustomize)
        settings = {"device": dict(device), "source": source, "cache": str(folder / "cache"), "scratch": str(scratch)}
        self._start(python, {**settings, "child_path": str(child)}, scratch, agent)
        try:
            self.hello = self._read(limits.start, "importing the engine")
        except EngineDiedError:
            self.kill()
            raise
        if "beyond" in self.hello:
            self.kill()
            raise EngineBeyondError(str(self.hello["beyond"]), absent=bool(self.hello.get("absent")))

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, question: Mapping[str, Any], limit: float | None = None) -> dict[str, Any]:
        """Ask and wait.

        Args:
            question: `want` and its fields; an `id` is added.
            limit: Seconds to wait, by default the limit of a question.

        Raises:
            EngineDiedError: No answer; the process has been ended and cannot be asked again.
        """
        self._number += 1
        line = json.dumps({"id": self._number, **question}) + "\n"
        try:
            self._send(line.encode())
            answer = self._read(limit or self._limits.question, "a question")
        except EngineDiedError:
            self.kill()
            raise
        if answer.get("id") != self._number:
            self.kill()
            raise EngineDiedError(f"the engine answered question {answer.get('id')!r} where {self._number} was asked")
        return answer

    def kill(self) -> None:
        """End the process and its children; nothing is left behind. Safe to call again."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for number in (self._questions, self._answers, self._lifeline):
            if number >= 0:
                with contextlib.suppress(OSError):
                    os.close(number)
        self._questions = self._answers = self._lifeline = -1
        self._listener.join(timeout=2)

    def tail(self) -> str:
        """The last lines that the engine printed."""
        return "\n".join(self._tail)

    def _start(self, python: str, settings: Mapping[str, Any], scratch: Path, agent: tuple[Path, str]) -> None:
        theirs_in, self._questions = os.pipe()
        self._answers, theirs_out = os.pipe()
        theirs_line, self._lifeline = os.pipe()
        theirs = (theirs_in, theirs_out, theirs_line)
        folder, module = agent
        settings = {**settings, "module": module}
        command = [isolation.program(python), "-c", _BOOT, str(folder), json.dumps(settings), *map(str, theirs)]
        environment = {key: value for key, value in isolation.environment().items() if not key.startswith(_CLEARED)}
        environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        try:
            self._process = subprocess.Popen(  # noqa: S603 -- the user names the interpreter
                command,
                pass_fds=theirs,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=scratch,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            for number in (self._questions, self._answers, self._lifeline):
                os.close(number)
            raise EngineDiedError(f"{python} cannot be started: {error}") from error
        finally:
            for number in theirs:
                os.close(number)
        os.set_blocking(self._answers, False)
        os.set_blocking(self._questions, False)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        """Keep what the engine prints from filling its pipe, and remember the end of it."""
        stream = self._process.stdout
        if stream is None:
            return
        with stream:
            for line in iter(lambda: stream.readline(8192), b""):
                self._tail.append(line.decode(errors="replace").rstrip()[:2000])

    def _send(self, data: bytes) -> None:
        deadline = time.monotonic() + self._limits.question
        while data:
            try:
                data = data[os.write(self._questions, data) :]
            except BlockingIOError:
                _wait(self._questions, selectors.EVENT_WRITE, deadline)
                if time.monotonic() >= deadline:
                    raise EngineSlowError(f"the engine read nothing for {self._limits.question:g} s") from None
            except OSError as error:
                raise EngineDiedError(f"the engine's process ended{self._ending()}") from error

    def _read(self, limit: float, doing: str) -> dict[str, Any]:
        started = time.monotonic()
        deadline = started + limit
        told = started + _TELL
        while b"\n" not in self._buffer:
            now = time.monotonic()
            if now >= deadline:
                raise EngineSlowError(f"no answer within {limit:g} s ({doing})")
            if now >= told:
                self._say(f"no answer from the engine for {now - started:.0f} s of at most {limit:g} s ({doing})")
                told = now + _TELL
            if _wait(self._answers, selectors.EVENT_READ, min(deadline, told)):
                data = os.read(self._answers, 1 << 16)
                if not data:
                    raise EngineDiedError(f"the engine's process ended ({doing}){self._ending()}")
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise EngineDiedError(f"the engine's process spoke no JSON: {line[:200]!r}") from error
        if not isinstance(answer, dict):
            raise EngineDiedError(f"the engine's process spoke no object: {line[:200]!r}")
        return answer

    def _ending(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=2)
        self._listener.join(timeout=1)
        status = self._process.returncode
        how = "" if status is None else f", signal {-status}" if status < 0 else f", status {status}"
        last = next((line for line in reversed(self._tail) if line.strip()), "")
        return how + (f": {last}" if last else "")


def _wait(number: int, event: int, deadline: float) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(number, event)
        return bool(selector.select(max(0.0, deadline - time.monotonic())))


def _write_once(path: Path, text: str) -> None:
    """Write a file in one step, for another process may be reading it."""
    with contextlib.suppress(OSError):
        if path.read_text(encoding="utf-8") == text:
            return
    scratch = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(path)
