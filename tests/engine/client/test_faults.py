"""kill -9 of each process at each moment: one clear error within its limit, and nothing is left."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

import toy_core
from staticfire.engine.client.limits import Limits
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.errors import EngineDeadError, EngineError, EngineStartError
from staticfire.engine.wire.messages import Progress
from toy_core import SLOW, ask, continuation, finish, named

pytestmark = pytest.mark.timeout(120)

PHASES = ("started", "said hello", "imported", "joined the coordinator", "loaded", "answered")
SECONDS = 10.0
"""More than any of these ends takes, however busy the machine."""


def one_of(folder: Path, name: str) -> int:
    (process,) = named(str(folder), f'"name": "{name}"')
    return int(process.pid)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("who", ["engine core 0", "engine core 1", "coordinator"])
def test_a_death_while_starting(folder: Path, who: str, phase: str):
    killed: list[float] = []

    def kill(engine: int, progress: Progress) -> None:
        # When the last engine has answered the start is over, so the first one's answer it is.
        if progress.phase == phase and not killed:
            os.kill(one_of(folder, who), signal.SIGKILL)
            killed.append(time.monotonic())

    with pytest.raises(EngineError) as caught:
        finish_or_fail(toy_core.client(on_progress=kill, data_parallel_size=2))
    assert time.monotonic() - killed[0] < SECONDS
    assert isinstance(caught.value, EngineStartError | EngineDeadError)
    assert re.search(rf"{who} \(pid \d+\): killed by SIGKILL", str(caught.value))


def test_a_worker_of_a_ready_engine_that_dies_while_another_starts():
    with pytest.raises(EngineStartError, match=r"worker 0\.1 \(pid 5\): killed by SIGKILL"):
        toy_core.client(data_parallel_size=2, seed=5)


def finish_or_fail(client: ProcessClient) -> None:
    """A death in the very last moment of the start is found by whoever asks next."""
    try:
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            with warnings.catch_warnings(action="error"):
                try:
                    dead = client.dead()
                except RuntimeWarning as warning:
                    raise EngineDeadError(str(warning)) from warning
            for why in dead.values():
                raise EngineDeadError(why)
    finally:
        client.close()


@pytest.mark.parametrize(
    ("phase", "how"),
    [
        *((phase, "SIGKILL") for phase in (*PHASES, "generating")),
        # To those who are left an orderly signal is no other than SIGKILL: two moments are enough.
        *((phase, how) for phase in ("imported", "generating") for how in ("SIGTERM", "SIGHUP")),
    ],
)
def test_a_front_end_that_dies_takes_all_along(folder: Path, phase: str, how: str):
    command = [sys.executable, toy_core.__file__, phase, how]
    environment = {**os.environ, "PYTHONPATH": str(Path(toy_core.__file__).parent)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    _, said = process.communicate(timeout=60)
    ended = time.monotonic()
    assert process.returncode == -signal.Signals[how], said
    assert toy_core.all_end(named(str(folder)), SECONDS)
    assert time.monotonic() - ended < SECONDS
    assert not list(folder.glob("staticfire-*"))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_an_engine_killed_while_generating(folder: Path, how: signal.Signals):
    client = toy_core.client()
    try:
        client.add([ask("a", [SLOW, 1], 900), ask("b", [SLOW, 2], 2)])
        assert list(finish(client, "b")) == ["b"]
        os.kill(one_of(folder, "engine core 0"), how)
        with pytest.raises(EngineDeadError, match=rf"killed by {how.name}") as caught:
            finish(client, "a", SECONDS)
        assert caught.value.lost == ("a",)
    finally:
        client.close()


def test_a_frozen_engine_does_not_keep_the_front_end_from_closing(folder: Path):
    client = toy_core.client()
    client.add([ask("a", [SLOW, 1], 900)])
    os.kill(one_of(folder, "engine core 0"), signal.SIGSTOP)
    since = time.monotonic()
    client.close()
    assert time.monotonic() - since < SECONDS


def test_a_fork_is_refused_and_costs_its_parent_nothing(folder: Path):
    """It would wait for ever: for answers that its parent gets, or for a lock that nobody in it holds."""
    client = toy_core.client(data_parallel_size=2)
    reading, writing = os.pipe()
    try:
        with client._lock.here():
            pid = os.fork()
            if pid == 0:
                os.write(writing, "\n".join(said_in_a_fork(client)).encode())
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as stream:
            refusals = stream.read().split("\n")
        assert os.waitpid(pid, 0)[1] == 0
        assert len(refusals) == 6
        wanted = f"belongs to process {os.getpid()}, which forked process {pid}: a fork cannot use it"
        assert all(wanted in said for said in refusals), refusals
        client.add([ask("a", [5])])
        assert finish(client, "a")["a"].token_ids == continuation([5], 5)
    finally:
        client.close()


def said_in_a_fork(client: ProcessClient) -> list[str]:
    client.close()
    said = []
    for call in (
        lambda: client.add([ask("a", [5])]),
        lambda: client.abort(["a"]),
        client.step,
        client.stats,
        client.dead,
        client.views,
    ):
        try:
            call()
        except EngineError as error:
            said.append(str(error))
    return said


def test_a_frozen_engine_ends_with_the_front_end(folder: Path):
    """Stopped, it sees nothing; it is continued to see that it must end. The folder goes as well."""
    command = [sys.executable, toy_core.__file__, "freezing", "SIGKILL"]
    environment = {**os.environ, "PYTHONPATH": str(Path(toy_core.__file__).parent)}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, said
    assert toy_core.all_end(named(str(folder)), SECONDS)
    assert not list(folder.glob("staticfire-*"))


def external(rank: int, port: int, **typed: Any) -> ProcessClient:
    return toy_core.client(
        data_parallel_size=2, data_parallel_rank=rank, data_parallel_external_lb=True, data_parallel_rpc_port=port,
        **typed,
    )  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_ctrl_c_goes_on_to_the_caller_and_the_engines_serve_on(folder: Path):
    client = toy_core.client()
    try:
        client.add([ask("a", [SLOW, 1], 300)])
        timer = threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            finish(client, "a")
        timer.join()
        client.abort(["a"], report=False)
        client.add([ask("b", [5])])
        assert finish(client, "b")["b"].token_ids == continuation([5], 5)
    finally:
        client.close()


def test_a_port_in_use_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EngineStartError, match=rf"cannot listen at tcp://127.0.0.1:{port}: Address already in use"):
            external(0, port)


def test_front_ends_with_an_engine_each_learn_where_the_loads_are_published():
    port = free_port()
    first = external(0, port)
    try:
        second = external(1, port)
        try:
            assert first.dp_stats_address == second.dp_stats_address
            assert first.dp_stats_address is not None
            assert first.dp_stats_address.startswith("tcp://127.0.0.1:")
            assert (list(first.engine_configs), list(second.engine_configs)) == ([0], [1])
            assert second.coordinator is None
            for client in (first, second):
                client.add([ask(str(n), [n]) for n in range(5)])
                assert len(finish(client, [str(n) for n in range(5)])) == 5
        finally:
            second.close()
        first.add([ask("a", [1])])
        assert len(finish(first, "a")) == 1
    finally:
        first.close()


def test_a_rank_that_finds_no_coordinator_says_where_it_looked():
    port = free_port()
    with pytest.raises(
        EngineStartError, match=rf"no data-parallel coordinator answers at tcp://127.0.0.1:{port} within"
    ):
        external(1, port, limits=Limits(join_s=0.5))


def test_the_second_front_end_may_be_first():
    """Its engine waits for the coordinator."""
    port = free_port()
    made: list[ProcessClient] = []
    thread = threading.Thread(target=lambda: made.append(external(1, port)))
    thread.start()
    time.sleep(0.3)
    first = external(0, port)
    thread.join(60)
    for client in (first, *made):
        client.close()
    assert len(made) == 1


def test_ranks_that_do_not_belong_together_are_refused():
    port = free_port()
    first = external(0, port)
    try:
        with pytest.raises(EngineStartError, match=r"started for data_parallel_size=2, and rank 1 of 3 wants to join"):
            toy_core.client(
                data_parallel_size=3, data_parallel_rank=1, data_parallel_external_lb=True, data_parallel_rpc_port=port
            )
        with pytest.raises(
            EngineStartError, match=r"it speaks protocol 1 .*, engine 1 protocol 77 \(staticfire 77.0\)"
        ):
            toy_core.client(
                "other_protocol_to_the_coordinator",
                data_parallel_size=2,
                data_parallel_rank=1,
                data_parallel_external_lb=True,
                data_parallel_rpc_port=port,
            )
    finally:
        first.close()


def test_a_rank_that_starts_again_takes_its_place():
    port = free_port()
    first = external(0, port)
    try:
        for _ in range(2):
            second = external(1, port)
            second.add([ask("a", [1])])
            assert len(finish(second, "a")) == 1
            second.close()
    finally:
        first.close()
