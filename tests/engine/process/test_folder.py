"""Folders go with their owner, whatever becomes of it; a path too long for a socket is not one."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import zmq

from staticfire.engine.errors import EngineStartError
from staticfire.engine.process import folder as folders
from staticfire.engine.process.folder import PrivateFolder
from staticfire.engine.process.sockets import bind, make_socket

HOLD = """
import sys
from staticfire.engine.process.folder import PrivateFolder
folder = PrivateFolder()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_it_is_private_and_goes(place: Path):
    folder = PrivateFolder()
    assert folder.path.parent == place
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.remove()
    folder.remove()
    assert not list(place.iterdir())


def test_the_next_owner_removes_what_a_killed_one_left(place: Path):
    """All processes of a start were killed in one moment: nobody was left to do it."""
    environment = {**os.environ, "TMPDIR": str(place)}
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        first = PrivateFolder()
        assert left.exists(), "its owner lives"
        owner.send_signal(signal.SIGKILL)
        owner.wait(60)
    assert left.exists()
    second = PrivateFolder()
    assert not left.exists()
    assert first.path.exists()
    first.remove()
    second.remove()


def test_what_is_not_ours_stays(place: Path):
    (place / "staticfire-other").mkdir()
    (place / "staticfire-file").touch()
    elsewhere = place / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / folders.OWNER).touch()
    (place / "staticfire-link").symlink_to(elsewhere)
    named = place / "staticfire-with-a-link"
    named.mkdir()
    (named / folders.OWNER).symlink_to(elsewhere / folders.OWNER)
    PrivateFolder().remove()
    assert {path.name for path in place.iterdir()} == {
        "staticfire-other", "staticfire-file", "elsewhere", "staticfire-link", "staticfire-with-a-link",
    }  # fmt: skip
    assert (elsewhere / folders.OWNER).exists()


@pytest.mark.parametrize("name", ["x" * 100, b"b\xff".decode("utf-8", "surrogateescape")])
def test_where_no_socket_can_be_another_place_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    odd = tmp_path / name
    odd.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(odd))
    folder = PrivateFolder()
    try:
        assert folder.path.parent == Path(folders.LAST_RESORT)
        listen_in(folder)
    finally:
        folder.remove()
    assert not list(odd.iterdir())


def listen_in(folder: PrivateFolder) -> None:
    """Bind to the longest name that there may be."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context, make_socket(context, zmq.ROUTER) as socket:
        bind(socket, folder.address("x" * folders.NAME_BYTES))


def test_the_longest_path_that_is_taken_holds_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(folders, "LAST_RESORT", str(tmp_path / "none"))
    taken = []
    for length in range(1, 100):
        place = tmp_path / ("y" * length)
        place.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(place))
        try:
            folder = PrivateFolder()
        except EngineStartError:
            break
        taken.append(length)
        listen_in(folder)
        folder.remove()
    assert len(str(tmp_path)) + len(taken) < folders.PATH_BYTES


def test_no_place_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setattr(folders, "LAST_RESORT", str(tmp_path / "gone too"))
    with pytest.raises(EngineStartError, match=r"no folder .*gone: No such file or directory; .*gone too: No such"):
        PrivateFolder()


def test_a_fork_removes_nothing(place: Path):
    folder = PrivateFolder()
    pid = os.fork()
    if pid == 0:
        folder.remove()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert folder.path.exists()
    folder.remove()
