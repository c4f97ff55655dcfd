"""A pipe named as an input, to which nobody writes, keeps no verb from ending when it is asked to."""

import os
import signal
import subprocess
import sys
import time

import pytest

VERBS = {
    "baseline": ["check", "a.sh", "--engine", "reference", "--baseline", "pipe"],
    "log": ["triage", "pipe"],
    "pipeline": ["pipeline", "pipe"],
    "matrix": ["matrix", "pipe"],
}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", VERBS)
def test_a_signal_ends_whoever_waits_for_a_pipe(verb, number, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.sh").write_text("vllm serve m\n")
    code = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from staticfire.harness.cli import main; sys.exit(main())"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *VERBS[verb]], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    writer = -1
    try:
        while process.poll() is None and (writer := _opened(tmp_path / "pipe")) < 0:
            time.sleep(0.05)
        if process.poll() is None:
            process.send_signal(number)
        assert process.wait(60) in {2, 130, -number}  # 2 where a pipe is no input
    finally:
        process.kill()
        process.communicate()
        if writer >= 0:
            os.close(writer)


def _opened(pipe):
    """The writing end of a pipe, -1 as long as nobody has opened the other one."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return -1
