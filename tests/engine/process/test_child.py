"""Children end when they should and at the latest with their parent; what they leave behind is nothing."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from process_children import __file__ as children_file
from staticfire.engine.errors import WireError
from staticfire.engine.process.child import Child
from staticfire.engine.process.exits import describe_exit
from waiting import gone

pytestmark = pytest.mark.timeout(60)
LIMIT_S = 20.0


@contextmanager
def started(entry: str, payload: bytes = b"", **options: object) -> Iterator[Child]:
    child = Child("child", f"process_children:{entry}", payload, **options)  # type: ignore[arg-type]
    try:
        yield child
    finally:
        child.kill()


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def freeze(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    assert eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def test_payload_frames_and_exit_code():
    with started("echo", b"payload") as child:
        assert child.channel.receive(LIMIT_S) == b"got payload"
        for data in (b"", b"x", os.urandom(3 << 20)):
            child.channel.send(data, LIMIT_S)
            assert child.channel.receive(LIMIT_S) == data
        assert child.exit_code() is None
        assert child.describe() == f"child (pid {child.pid}): still running"
        child.channel.send(b"end", LIMIT_S)
        assert child.exit_code(LIMIT_S) == 7
        assert child.describe() == f"child (pid {child.pid}): exit code 7"
        with pytest.raises(EOFError):
            child.channel.receive(LIMIT_S)
    assert gone(child.pid)


def test_what_it_said_last_is_kept():
    with started("fail") as child:
        assert child.exit_code(LIMIT_S) == 1
        lines = child.tail(LIMIT_S).splitlines()
    assert lines[-1] == "RuntimeError: the reason"
    assert "line 0" not in lines
    assert len(lines) == 20


def test_a_child_sees_modules_where_its_parent_does():
    with started("path_of") as child:
        assert child.channel.receive(LIMIT_S).decode().split("\n") == [entry for entry in sys.path if entry]
        assert "STATICFIRE_CHILD_PATH" not in psutil.Process(os.getpid()).environ()


def test_its_death_makes_it_readable_and_is_described():
    with started("wait") as child:
        assert child.channel.receive(LIMIT_S) == b"up"
        assert not select.select([child], [], [], 0)[0]
        os.kill(child.pid, signal.SIGKILL)
        assert select.select([child], [], [], LIMIT_S)[0]
        assert child.exit_code(LIMIT_S) == -signal.SIGKILL
        assert child.describe().endswith(": killed by SIGKILL")


@pytest.mark.parametrize("entry", ["wait", "deaf"])
def test_stop_ends_it(entry: str):
    with started(entry) as child:
        child.channel.receive(LIMIT_S)
        child.stop()
        assert gone(child.pid)
        child.stop()
        child.kill()


def test_stop_ends_one_that_was_stopped_by_a_signal():
    with started("wait") as child:
        child.channel.receive(LIMIT_S)
        freeze(child.pid)
        child.stop(patience_s=0.1)
        assert gone(child.pid)
        assert child.exit_code() in (-signal.SIGKILL, -signal.SIGTERM)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_grandchildren_end_with_their_parent(how: signal.Signals):
    with started("parent_of_two") as child:
        pids = [int(pid) for pid in child.channel.receive(LIMIT_S).split()]
        os.kill(child.pid, how)
        assert eventually(lambda: all(map(gone, pids)))


def test_killing_a_group_takes_its_frozen_members_along():
    with started("parent_of_two") as child:
        near, far = (int(pid) for pid in child.channel.receive(LIMIT_S).split())
        freeze(near)
        os.kill(child.pid, signal.SIGKILL)
        child.kill()
        assert eventually(lambda: gone(near))
        assert eventually(lambda: gone(far))


@pytest.mark.parametrize("fork", [[], ["with a copy of the lifeline"]])
def test_the_death_of_the_parent_ends_it_and_removes_its_belongings(tmp_path: Path, fork: list[str]):
    folder = tmp_path / "private"
    folder.mkdir()
    (folder / "socket").touch()
    command = [sys.executable, children_file, str(folder), *fork]
    environment = {**os.environ, "PYTHONPATH": str(Path(children_file).parent)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, process_group=0) as parent:
        assert parent.stdout is not None
        try:
            pid = int(parent.stdout.readline())
            assert not gone(pid)
            parent.kill()
            assert eventually(lambda: gone(pid))
            assert not folder.exists()
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux continues a stopped process when its parent dies")
def test_a_stopped_child_ends_with_its_parent_as_well(tmp_path: Path):
    """Its watchdog is stopped too, and it leads a group of its own, so nobody else ends it."""
    folder = tmp_path / "private"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(children_file).parent)}
    command = [sys.executable, children_file, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        try:
            freeze(pid)
            parent.kill()
            assert eventually(lambda: gone(pid))
            assert not folder.exists()
        finally:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)


def test_the_end_of_the_thread_that_started_it_is_not_its_end():
    made: list[Child] = []
    thread = threading.Thread(target=lambda: made.append(Child("child", "process_children:echo")))
    thread.start()
    thread.join()
    try:
        assert made[0].channel.receive(LIMIT_S) == b"got "
        assert made[0].exit_code(0.3) is None
    finally:
        made[0].kill()


def test_a_fork_has_no_say():
    with started("wait") as child:
        child.channel.receive(LIMIT_S)
        pid = os.fork()
        if pid == 0:
            child.stop()
            child.kill()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert not select.select([child], [], [], 0.2)[0]
        assert child.exit_code() is None


def test_too_large_a_frame_is_refused_by_either_side():
    with started("echo") as child:
        child.channel.receive(LIMIT_S)
        child.channel._max_bytes = 10
        with pytest.raises(WireError, match=r"11 bytes: at most 10"):
            child.channel.send(bytes(11))
        child.channel._max_bytes = 1 << 20
        child.channel.send(bytes(11), LIMIT_S)
        child.channel._max_bytes = 10
        with pytest.raises(WireError, match=r"11 bytes is announced"):
            child.channel.receive(LIMIT_S)


def test_a_silent_child_costs_no_more_than_the_limit():
    with started("wait") as child:
        assert child.channel.receive(LIMIT_S) == b"up"
        with pytest.raises(TimeoutError):
            child.channel.receive(0.05)


def test_an_entry_that_does_not_exist():
    with started("no_such_function") as child:
        assert child.exit_code(LIMIT_S) == 1
        assert "no_such_function" in child.tail()


def test_exits_in_words():
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "killed by SIGKILL"
    assert describe_exit(-200) == "killed by signal 200"
    assert describe_exit(None) == "still running"
