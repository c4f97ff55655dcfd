"""Run a short script in the user's interpreter, whatever that turns out to be: silent, endless, no Python at all."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from staticfire.harness import isolation
from staticfire.harness.errors import InputError

MOST_BYTES: Final = 1 << 20
QUIET: Final = 5.0
"""Seconds of silence after which a person is told what is waited for."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a program said before it ended.

    Attributes:
        status: As `subprocess` gives it.
        out: Lines of its standard output that are not blank.
        errors: The same of its standard error.
    """

    status: int
    out: list[str]
    errors: list[str]


def run(python: str, arguments: Sequence[str], limit: float, say: Callable[[str], None]) -> Said:
    """Run and wait.

    Args:
        python: The interpreter, as the user names it.
        arguments: What it is given.
        limit: Seconds to wait.
        say: Told what is waited for, when that takes long.

    Raises:
        InputError: It cannot be started, is silent for too long, or prints without an end.
    """
    with isolation.empty_folder() as folder:
        return _run(python, arguments, folder, limit, say)


def _run(python: str, arguments: Sequence[str], folder: Path, limit: float, say: Callable[[str], None]) -> Said:
    try:
        process = subprocess.Popen(  # noqa: S603 -- running the interpreter that the user named is the point
            [isolation.program(python), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=isolation.environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise InputError(f"--engine-python {python}: {_unstartable(python, error)}.") from error
    except ValueError as error:
        raise InputError(f"--engine-python {python!r}: is no path: {error}.") from error
    try:
        streams = _read(process, python, limit, say)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    out, errors = ([line for line in data.decode(errors="replace").splitlines() if line.strip()] for data in streams)
    return Said(process.returncode, out, errors)


def _read(
    process: "subprocess.Popen[bytes]", python: str, limit: float, say: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """Both streams until the program has ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    started, told = time.monotonic(), False
    pipes = (process.stdout, process.stderr)
    data = {pipe.fileno(): b"" for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for number in data:
            selector.register(number, selectors.EVENT_READ)
        while selector.get_map() or process.poll() is None:
            waited = time.monotonic() - started
            if waited >= limit:
                raise InputError(
                    f"--engine-python {python}: gave no answer within {limit:g} s. Is it a Python interpreter, and "
                    "does it start by itself? If it is only slow, let it have longer: --engine-wait SECONDS."
                )
            if waited >= QUIET and not told:
                say(f"waiting for {python} to say which engine it has ({waited:.0f} of at most {limit:g} s)")
                told = True
            for key, _ in selector.select(min(0.5, limit - waited)):
                more = os.read(key.fd, 1 << 16)
                if not more:
                    selector.unregister(key.fd)
                data[key.fd] += more
                if len(data[key.fd]) > MOST_BYTES:
                    raise InputError(f"--engine-python {python}: is no Python interpreter: it prints without an end.")
            if process.poll() is not None and waited > QUIET:
                break  # it has ended, and what it left behind holds its pipes open
            if not selector.get_map():
                time.sleep(0.01)
    return data[pipes[0].fileno()], data[pipes[1].fileno()]


def _unstartable(python: str, error: OSError) -> str:
    path = Path(python)
    if path.is_dir():
        inside = next((one for one in (path / "bin" / "python", path / "python") if one.is_file()), None)
        return f"is a folder; name the interpreter in it, such as {inside or path / 'bin' / 'python'}"
    if isinstance(error, FileNotFoundError):
        if path.is_file():
            return "cannot be run: the interpreter that its first line names is not there"
        where = "there is no such file" if os.sep in python else "there is no such program on PATH"
        near = shutil.which("python3")
        return where + (f"; {near} is one" if near else "")
    if isinstance(error, PermissionError):
        return "is not executable; make it so (chmod +x), or name another interpreter"
    return f"cannot be run: {error.strerror or error}"
