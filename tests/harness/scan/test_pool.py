import os
import signal
import subprocess
import sys
from multiprocessing import get_all_start_methods, get_context

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.scan.pool import readers
from waiting import soon_gone

SLOW = r"""
import os, sys, time
from multiprocessing import get_context
from staticfire.harness.scan.pool import readers

def slow(_):
    os.write(1, b"%d\n" % os.getpid())  # in one piece: two write at once
    time.sleep(600)

if __name__ == "__main__":
    with readers("files", 2, get_context(sys.argv[1])) as pool:
        list(pool.map(slow, range(2)))
"""

METHODS = [method for method in get_all_start_methods() if method != "forkserver"]


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("method", METHODS)
def test_a_reader_that_dies_is_one_error(method):
    with (
        pytest.raises(InputError, match=r"^some/folder: a process that read it ended early"),
        readers("some/folder", 2, get_context(method)) as pool,
    ):
        list(pool.map(die, range(2)))


@pytest.mark.parametrize("method", METHODS)
def test_readers_end_with_a_killed_parent(method, tmp_path):
    script = tmp_path / "slow.py"
    script.write_text(SLOW)
    process = subprocess.Popen([sys.executable, script, method], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.wait(30)
        assert all(soon_gone(pid) for pid in pids), pids
