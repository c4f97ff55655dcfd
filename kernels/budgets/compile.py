"""Compiles variants for targets in child processes, and remembers what came out, by content. Imports nothing heavy.

What is remembered depends on the sources of the kernel, the variant, the target, the version of Triton, and our own
reading of the binary; a changed comment compiles again, which is cheaper than being wrong.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from staticfire.kernels.budgets.resources import Resources
from staticfire.kernels.budgets.sources import digest
from staticfire.kernels.targets import FP_FUSION, Target
from staticfire.kernels.variant import TritonType, Variant

PROCESSES: Final = 2
TIMEOUT_SECONDS: Final = 300.0
_CHILD: Final = "staticfire.kernels.budgets.child"


@dataclass(frozen=True, slots=True)
class Compiled:
    """One variant on one target.

    Attributes:
        variant: What was compiled.
        target: For what.
        resources: What it takes; None where it does not compile.
        error: Why it does not compile.
        fresh: Whether it was compiled now, and not remembered.
    """

    variant: Variant
    target: Target
    resources: Resources | None
    error: str | None
    fresh: bool

    @property
    def num_stages(self) -> int:
        """Depth of software pipelining that it was compiled with."""
        return _stages(self.variant, self.target)


def triton_version() -> str:
    """The installed version of Triton.

    Raises:
        PackageNotFoundError: There is none.
    """
    return version("triton")


def job(variant: Variant, target: Target, timeout: float = TIMEOUT_SECONDS) -> dict[str, Any]:
    """Write down what the child has to know.

    Args:
        variant: What to compile.
        target: For what.
        timeout: Seconds after which the child is ended.

    Returns:
        Plain data.
    """
    constants = {
        name: {"dtype": value.name} if isinstance(value, TritonType) else value
        for name, value in variant.constexprs.items()
    }
    return {
        "target": target.name,
        "kernel": variant.kernel,
        "signature": dict(variant.signature),
        "constexprs": constants,
        "num_warps": variant.num_warps,
        "num_stages": _stages(variant, target),
        "timeout": timeout,
    }


def _stages(variant: Variant, target: Target) -> int:
    return target.num_stages if variant.num_stages is None else variant.num_stages


def key(variant: Variant, target: Target) -> str:
    """Name the result by everything that decides it."""
    content = {
        **job(variant, target),
        "triton": triton_version(),
        "fusion": FP_FUSION,
        "source": digest(variant.kernel.partition(":")[0]),
        "reading": [digest(_CHILD), digest("staticfire.kernels.targets")],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def child_environment(folder: Path) -> dict[str, str]:
    """Make the environment of a child: ours, but for everything that tells Triton to do other than usual.

    Args:
        folder: Where Triton keeps what it compiles, and compilers the files between their steps.

    Returns:
        All variables.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_")}
    return kept | {
        "TRITON_DEFAULT_FP_FUSION": FP_FUSION,
        "TRITON_CACHE_DIR": str(folder),
        "TMPDIR": str(folder),
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
    }


class _Child:
    """A compiling process that is started when needed, and again after it died."""

    def __init__(self, folder: Path, ended: threading.Event) -> None:
        self._folder = folder
        self._ended = ended
        self._process: subprocess.Popen[str] | None = None
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Compile one job; a death of the process is an error of the job."""
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer:
            read: dict[str, Any] = json.loads(answer)
            return read
        code = process.wait()
        self._release()
        if code == -signal.SIGALRM:
            return {"error": f"not compiled after {question['timeout']:g} s"}
        return {"error": f"the compiler died ({_how(code)}){self._last_words()}"}

    def kill(self) -> None:
        """End the process and the assembler it may wait for, which have nothing to lose; from any thread."""
        if (process := self._process) is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process, and let go of all it had."""
        self.kill()
        if self._process is not None:
            self._process.wait()
            self._release()
        self._said.close()

    def _release(self) -> None:
        """Let go of a process that has ended."""
        assert self._process is not None
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):  # what it did not take any more
                    stream.close()
        self._process = None

    def _start(self) -> subprocess.Popen[str]:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
            env=child_environment(self._folder),
            process_group=0,
        )
        if self._ended.is_set():
            self.kill()
        return self._process

    def _last_words(self) -> str:
        self._said.seek(0)
        said = [line.strip() for line in self._said.read().splitlines() if line.strip()]
        self._said.truncate(0)
        self._said.seek(0)
        return f": {said[-1]}" if said else ""


def _how(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


class _Children:
    """Compiling processes, one for each thread that asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = threading.local()
        self._ended = threading.Event()
        self._made: list[_Child] = []

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the child of the calling thread."""
        if not hasattr(self._own, "child"):
            self._own.child = _Child(self._folder, self._ended)
            self._made.append(self._own.child)
        answer: dict[str, Any] = self._own.child.ask(question)
        return answer

    def kill(self) -> None:
        """End all that is being compiled or about to be; whoever waits for it gets an error."""
        self._ended.set()
        for child in self._made:
            child.kill()

    def close(self) -> None:
        """End them all, when nobody asks any more."""
        for child in self._made:
            child.close()


@contextmanager
def _children() -> Iterator[_Children]:
    with tempfile.TemporaryDirectory(prefix="staticfire-triton-", ignore_cleanup_errors=True) as folder:
        children = _Children(Path(folder))
        try:
            yield children
        finally:
            children.close()


def compile_all(
    wanted: Sequence[tuple[Variant, Target]],
    cache: Path,
    *,
    processes: int = PROCESSES,
    timeout: float = TIMEOUT_SECONDS,
    progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> list[Compiled]:
    """Compile everything that is not remembered.

    Args:
        wanted: Variants and targets.
        cache: Folder of remembered results; made when missing.
        processes: Children at most.
        timeout: Seconds for one compilation.
        progress: Called with (compiled, to compile) after each compilation.

    Returns:
        The outcomes, in the order of `wanted`. Failures are not remembered.

    Raises:
        OSError: The cache cannot be written.
    """
    cache.mkdir(parents=True, exist_ok=True)
    files = [cache / f"{key(variant, target)}.json" for variant, target in wanted]
    known = [_remembered(file) for file in files]
    missing = [index for index, resources in enumerate(known) if resources is None]
    outcomes: dict[int, dict[str, Any]] = {}
    count = min(processes, len(missing))
    if count:
        with _children() as children, ThreadPoolExecutor(count) as pool:
            try:
                asked = pool.map(lambda index: children.ask(job(*wanted[index], timeout)), missing)
                for index, outcome in zip(missing, asked, strict=True):
                    outcomes[index] = outcome
                    if "resources" in outcome:
                        _remember(files[index], outcome["resources"])
                    progress(len(outcomes), len(missing))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                children.kill()
                raise
    return [_outcome(pair, known[index], outcomes.get(index)) for index, pair in enumerate(wanted)]


def _outcome(pair: tuple[Variant, Target], known: Resources | None, new: Mapping[str, Any] | None) -> Compiled:
    if new is None:
        return Compiled(*pair, known, None, fresh=False)
    resources = Resources.from_json(new["resources"]) if "resources" in new else None
    return Compiled(*pair, resources, new.get("error"), fresh=True)


def _remembered(file: Path) -> Resources | None:
    """Read one result; what cannot be read is compiled again."""
    try:
        return Resources.from_json(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None


def _remember(file: Path, resources: Mapping[str, Any]) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=file.parent, delete=False) as new:
        new.write(json.dumps(resources))
    try:
        Path(new.name).replace(file)
    except OSError:
        Path(new.name).unlink()
        raise
