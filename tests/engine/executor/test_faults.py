"""Ranks that die, hang, break or disagree: one error that names them, within the limit, and nothing left behind."""

import _thread
import os
import re
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from staticfire.engine.errors import CheckpointError, EngineDeadError, EngineError, EngineStartError
from staticfire.engine.executor.base import Phase, Progress
from staticfire.engine.executor.limits import Limits
from staticfire.engine.executor.processes import ProcessExecutor
from staticfire.engine.sampling_params import SamplingParams
from tp_models import JAMBA, assert_same, generate, resolved

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.timeout(240)]

PHASES: tuple[Phase, ...] = ("spawned", "imported", "joined", "loaded", "aligned", "ready")
LIMITS = Limits(start=100.0, step=60.0)
SHORT = Limits(start=100.0, step=2.0)
GREEDY = SamplingParams(max_tokens=4, ignore_eos=True, logprobs=2)
PROMPTS = [[1, 2, 3], [4, 5]]
SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process, no temporary folder, no shared memory survives a test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    children = set(psutil.Process().children(recursive=True))
    shared = set(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else set()
    yield
    left = set(psutil.Process().children(recursive=True)) - children
    assert not left
    assert not list(tmp_path.iterdir())
    # Others may use shared memory meanwhile; torch's segments have the pid of their maker in their names.
    now = set(SHARED_MEMORY.iterdir()) if SHARED_MEMORY.is_dir() else set()
    assert not [path for path in now - shared if path.name.startswith("torch_")]


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def entry(fault: str, rank: int = 1, step: int = 2) -> str:
        monkeypatch.setenv("ODD_RANK", str(rank))
        monkeypatch.setenv("ODD_STEP", str(step))
        return f"odd_ranks:{fault}"

    return entry


def started(entry: str | None = None, limits: Limits = LIMITS, **options: Any) -> ProcessExecutor:
    if entry is not None:
        options["entry"] = entry
    return ProcessExecutor(resolved(JAMBA, 2), time_limits=limits, **options)


def start_and_serve(progress: Progress) -> None:
    executor = started(progress=progress)
    try:
        serve(executor)
    finally:
        executor.close()


def serve(executor: ProcessExecutor) -> None:
    generate(executor.config, executor, PROMPTS, GREEDY)


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize("phase", PHASES)
def test_a_rank_killed_while_it_starts(phase: Phase, rank: int):
    """A rank that is ready may find the others ready too: then the first step tells."""
    killed = []

    def progress(who: int, pid: int, reached: Phase) -> None:
        if (who, reached) == (rank, phase):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with pytest.raises((EngineStartError, EngineDeadError)) as caught:
        start_and_serve(progress)
    starting = isinstance(caught.value, EngineStartError)
    assert starting or phase == "ready"
    assert f"worker 0.{rank} (pid {killed[0]}): killed by SIGKILL" in str(caught.value)
    assert f"worker 0.{1 - rank}" not in str(caught.value)
    if starting and phase != "ready":
        later = PHASES[PHASES.index(phase) : -1]
        assert any(f"after phase {name!r}" in str(caught.value) for name in later)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_killed_in_a_step(rank: int, odd: Callable[..., str]):
    executor = started(odd("dies", rank))
    pid = executor.pids[rank]
    with pytest.raises(
        EngineDeadError, match=rf"worker 0\.{rank} \(pid {pid}\): killed by SIGKILL, computing"
    ) as caught:
        serve(executor)
    assert caught.value.who == f"worker 0.{rank}"
    with pytest.raises(EngineDeadError, match="killed by SIGKILL"):
        executor.forget()
    executor.close()


def check_for_a_minute(executor: ProcessExecutor) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        executor.check()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_killed_between_steps(rank: int):
    executor = started()
    serve(executor)
    executor.check()
    os.kill(executor.pids[rank], signal.SIGKILL)
    with pytest.raises(EngineDeadError, match=rf"worker 0\.{rank} .*killed by SIGKILL, between two steps"):
        check_for_a_minute(executor)
    executor.close()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_hangs_is_told_from_those_that_wait_for_it(rank: int, odd: Callable[..., str]):
    executor = started(odd("hangs", rank), SHORT)
    with pytest.raises(
        EngineDeadError, match=rf"worker 0\.{rank} .*silent for too long .STATICFIRE_STEP_TIMEOUT_S=2"
    ) as e:
        serve(executor)
    assert e.value.who == f"worker 0.{rank}"
    executor.close()


def test_a_rank_that_never_comes(odd: Callable[..., str]):
    with pytest.raises(EngineStartError, match=r"worker 0\.1 .*silent for too long .STATICFIRE_START_TIMEOUT_S=15"):
        started(odd("stays_away"), Limits(start=15.0))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_bug_on_one_rank(rank: int, odd: Callable[..., str]):
    executor = started(odd("breaks", rank))
    with pytest.raises(EngineDeadError, match=rf"worker 0\.{rank} .*ValueError: a bug of this rank") as caught:
        serve(executor)
    assert any("odd_ranks.py" in note for note in caught.value.__notes__)
    executor.close()


def test_an_error_that_all_ranks_meet_ends_the_step_alone(odd: Callable[..., str]):
    executor = started(odd("fails_with_all"))
    with pytest.raises(EngineError, match=r"logits are not finite for request\(s\) 0\.0") as caught:
        serve(executor)
    assert type(caught.value) is EngineError
    executor.forget()
    # The step that failed has passed: the same executor serves.
    os.environ["ODD_STEP"] = "-1"
    outcome = generate(executor.config, _Renumbered(executor), PROMPTS, GREEDY)
    executor.close()
    plain = started()
    assert_same(outcome, generate(plain.config, plain, PROMPTS, GREEDY))
    plain.close()


class _Renumbered:
    """Steps counted from 100, where no fault is planted."""

    def __init__(self, executor: ProcessExecutor) -> None:
        self._executor = executor

    def execute(self, output: Any) -> Any:
        return self._executor.execute(msgspec.structs.replace(output, step=100 + output.step))


def test_a_rank_that_ends_before_it_speaks(odd: Callable[..., str]):
    with pytest.raises(EngineStartError) as caught:
        started(odd("cannot_import"))
    text = str(caught.value)
    assert "worker 0.1 (pid " in text
    assert "exit code 1, getting ready" in text
    assert "ImportError: no module of that name" in text


@pytest.mark.parametrize("rank", [0, 1])
def test_ranks_that_disagree_are_named_with_what_they_believe(rank: int, odd: Callable[..., str]):
    with pytest.raises(EngineStartError) as caught:
        started(odd("miscounts", rank))
    text = str(caught.value)
    right, wrong = 1 - rank, rank
    assert text.startswith("the ranks of engine 0 settled different configurations: runtime.num_gpu_blocks is ")
    found = re.findall(r"(\d+) on rank (\d)", text)
    blocks = {int(rank): int(value) for value, rank in found}
    assert blocks.keys() == {0, 1}
    assert blocks[right] - blocks[wrong] == 1
    assert text.count(" is ") == 1  # nothing else differs


def test_a_fault_of_the_user_is_told_as_with_one_process(tmp_path: Path):
    """A broken checkpoint is the same error, of the same kind, as without ranks."""
    with pytest.raises(CheckpointError, match=r"model\.safetensors: no such file"):
        ProcessExecutor(resolved(JAMBA, 2, str(tmp_path), load_format="safetensors"), time_limits=LIMITS)


def test_ctrl_c_in_a_step_costs_no_rank(odd: Callable[..., str]):
    executor = started(odd("dawdles", 1, 1))
    scheduled: list[Any] = []

    class Interrupted:
        def execute(self, output: Any) -> Any:
            scheduled.append(output)
            if output.step == 1:
                threading.Timer(0.3, _thread.interrupt_main).start()
            return executor.execute(output)

    with pytest.raises(KeyboardInterrupt):
        generate(executor.config, Interrupted(), PROMPTS, GREEDY)
    assert len(scheduled) == 2
    executor.forget()
    outcome = generate(executor.config, _Renumbered(executor), PROMPTS, GREEDY)
    executor.close()
    plain = started()
    assert_same(outcome, generate(plain.config, plain, PROMPTS, GREEDY))
    plain.close()


def test_closing_twice_and_using_it_afterwards():
    executor = started()
    executor.close()
    executor.close()
    with pytest.raises(EngineDeadError, match="this engine is closed"):
        executor.check()


def test_an_executor_that_nobody_holds_ends_its_ranks():
    executor = started()
    processes = [psutil.Process(pid) for pid in executor.pids]
    del executor
    psutil.wait_procs(processes, timeout=60)
    assert not [process for process in processes if process.is_running()]


def test_a_fork_is_refused_and_costs_its_parent_nothing():
    """The thread that speaks to the ranks is not in the fork, which would wait for it for ever."""
    executor = started()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            executor.check()
        except EngineError as error:
            os.write(writing, str(error).encode())
        executor.close()
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        said = stream.read()
    assert os.waitpid(pid, 0)[1] == 0
    assert f"belongs to process {os.getpid()}, which forked process {pid}: a fork cannot use it" in said
    serve(executor)
    executor.close()


def test_ranks_meet_in_a_folder_that_is_given_and_leave_it(tmp_path: Path):
    """Whoever gave it removes it, also when the executor is killed before its ranks have met."""
    place = tmp_path / "given"
    place.mkdir()
    seen: list[set[str]] = []

    def progress(rank: int, pid: int, phase: Phase) -> None:
        seen.append({path.name for path in place.iterdir()})

    executor = started(folder=str(place), progress=progress)
    executor.close()
    assert seen[0] == {"ranks-0"}
    assert seen[-1] == set()
    assert list(tmp_path.iterdir()) == [place]
    place.rmdir()
