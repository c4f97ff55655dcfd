"""Parity tests in child processes, without a mutant and with one.

A child is a fork of this process, which has imported torch, triton and pytest and made no thread: importing them takes
longer than most mutants live.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from hypothesis import Phase, settings

from mutation.sample import ROOT, Mutant

PARITY: Final = "tests/kernels/parity"
PROFILE: Final = "mutants"
SLACK_S: Final = 120.0
"""Beside ten times what the tests take without a mutant: the machine may have become busier."""

OPTIONS: Final = (
    "-q",
    "--timeout=0",
    *("-p", "no:cacheprovider"),
    *("-p", "no:buildkite-test-collector"),
    # What this process has imported already is none of the tests.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


@dataclass(frozen=True)
class Suite:
    """The parity tests as they are.

    Attributes:
        seconds: Test -> how long it takes.
        launches: Test -> the kernels it launches, as `folder.function`.
    """

    seconds: Mapping[str, float]
    launches: Mapping[str, frozenset[str]]

    def of(self, kernels: frozenset[str]) -> list[str]:
        """The tests that launch one of these, the quickest first."""
        return sorted((t for t, launched in self.launches.items() if launched & kernels), key=self.seconds.__getitem__)


@dataclass(frozen=True)
class Fate:
    """What became of a mutant.

    Attributes:
        killed: Whether a test failed or did not end.
        how: The exception, `timeout`, or why it survived.
        test: The test that failed.
        seconds: How long it took.
    """

    killed: bool
    how: str
    test: str
    seconds: float


@dataclass
class _Recorder:
    """A pytest plugin: what ran, what it launched, how it failed."""

    seconds: dict[str, float] = field(default_factory=dict)
    launches: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    failure: tuple[str, str] | None = None
    _test: str = ""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._test = item.nodeid
        started = time.perf_counter()
        result = yield
        self.seconds[item.nodeid] = time.perf_counter() - started
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        if report.failed and self.failure is None and call.excinfo is not None:
            self.failure = call.excinfo.typename, item.nodeid
        return report

    def watch(self) -> None:
        """Note every launch of an interpreted kernel."""
        interpreter: Any = importlib.import_module("triton.runtime.interpreter")
        launch = interpreter.GridExecutor.__call__

        def noted(executor: Any, *args: Any, **kwargs: Any) -> Any:
            name = executor.fn.__module__.split(".")
            self.launches[self._test].add(f"{name[-2]}.{executor.fn.__name__}")
            return launch(executor, *args, **kwargs)

        interpreter.GridExecutor.__call__ = noted


class _Stand(importlib.abc.MetaPathFinder):
    """A pytest plugin that hands out a file in the place of a module."""

    def __init__(self, module: str, file: Path) -> None:
        self.module, self.file = module, file

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the contract's
        target: ModuleType | None = None,  # noqa: ARG002 - the contract's
    ) -> importlib.machinery.ModuleSpec | None:
        """See `MetaPathFinder`."""
        return importlib.util.spec_from_file_location(fullname, self.file) if fullname == self.module else None

    def pytest_sessionstart(self) -> None:
        """Come before pytest's own hook, which rewrites the modules of packages that have plugins, ours among them."""
        sys.meta_path.insert(0, self)


def prepare() -> None:
    """Import what every child needs. Before it, nothing may have imported triton.

    Examples are the same every time, and a failing one is not made smaller: in the interpreter that takes minutes.
    """
    os.environ |= {
        "TRITON_INTERPRET": "1",
        "PYTHONSAFEPATH": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "HYPOTHESIS_PROFILE": PROFILE,
    }
    settings.register_profile(
        PROFILE, deadline=None, derandomize=True, database=None, phases=(Phase.explicit, Phase.generate)
    )
    for library in ("numpy", "torch", "triton"):
        importlib.import_module(library)


def record(file: str) -> Suite:
    """Run one file of tests without a mutant.

    Raises:
        SystemExit: A test fails: then no mutant can be told from the kernel.
    """
    said = _fork(_record, (file,), None)
    if said is None or said["code"] != pytest.ExitCode.OK:
        raise SystemExit(f"{file} fails without a mutant:\n{said and said['output'][-4000:]}")
    return Suite(said["seconds"], {test: frozenset(names) for test, names in said["launches"].items()})


def _record(file: str) -> dict[str, Any]:
    recorder = _Recorder()
    recorder.watch()
    code = pytest.main([*OPTIONS, file], plugins=[recorder])
    return {
        "code": code,
        "seconds": recorder.seconds,
        "launches": {test: sorted(names) for test, names in recorder.launches.items()},
    }


def try_mutant(mutant: Mutant, tests: Sequence[str], limit_s: float) -> Fate:
    """Run tests against a mutant until one fails."""
    started = time.perf_counter()
    said = _fork(_try, (mutant, list(tests)), limit_s)
    took = time.perf_counter() - started
    if said is None:
        return Fate(True, "timeout", "", took)
    if said["code"] < 0:
        return Fate(True, signal.Signals(-said["code"]).name, "", took)
    if not said.get("loaded"):
        raise SystemExit(f"{mutant.name}: the tests never imported the mutant:\n{said['output'][-4000:]}")
    if said["failure"] is not None:
        return Fate(True, said["failure"][0], said["failure"][1], took)
    if said["code"] != pytest.ExitCode.OK:
        raise SystemExit(f"{mutant.name}: pytest ended with {said['code']}:\n{said['output'][-4000:]}")
    return Fate(False, f"{said['ran']} tests passed", "", took)


def _try(mutant: Mutant, tests: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "triton.py"
        file.write_text(mutant.mutated)
        module = f"staticfire.kernels.{mutant.folder}.triton"
        recorder = _Recorder()
        code = pytest.main([*OPTIONS, "-x", *tests], plugins=[recorder, _Stand(module, file)])
        loaded = getattr(sys.modules.get(module), "__file__", None) == str(file)
        # A mutant that cannot even be imported is killed by the test that asks for it.
        loaded |= recorder.failure is not None
    return {"code": code, "failure": recorder.failure, "ran": len(recorder.seconds), "loaded": loaded}


def _fork(work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], limit_s: float | None) -> Any:
    """What `work` returns in a child, with what it printed; None if it takes longer than `limit_s` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        answer, output = Path(folder) / "answer.json", Path(folder) / "output.txt"
        child = get_context("fork").Process(target=_child, args=(work, arguments, answer, output))
        child.start()
        child.join(limit_s)
        if child.is_alive():
            child.kill()
            child.join()
            return None
        said = json.loads(answer.read_text()) if answer.exists() else {"code": child.exitcode}
        return {**said, "output": output.read_text(errors="replace")}


def _child(work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], answer: Path, output: Path) -> None:
    os.chdir(ROOT)
    with output.open("w") as stream, redirect_stdout(stream), redirect_stderr(stream):
        try:
            answer.write_text(json.dumps(work(*arguments)))
        except BaseException:  # noqa: BLE001 - the parent reads it
            traceback.print_exc()
            os._exit(1)
    os._exit(0)
