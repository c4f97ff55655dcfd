"""What the children of these tests run; found by them because `sys.path` is handed over."""

import signal
import subprocess
import sys
import time
from pathlib import Path

from staticfire.engine.process.child import Child
from staticfire.engine.process.frames import Channel


def echo(payload: bytes, channel: Channel) -> int:
    channel.send(b"got " + payload)
    while (data := channel.receive()) != b"end":
        channel.send(data)
    return 7


def wait(payload: bytes, channel: Channel) -> None:
    channel.send(b"up")
    time.sleep(600)


def deaf(payload: bytes, channel: Channel) -> None:
    """Hold on against SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    wait(payload, channel)


def fail(payload: bytes, channel: Channel) -> None:
    for number in range(50):
        sys.stderr.write(f"line {number}\n")
    raise RuntimeError("the reason")


def parent_of_two(payload: bytes, channel: Channel) -> None:
    """Start a child in this group and one of its own, say their pids, then wait."""
    near = Child("near", "process_children:wait", own_group=False)
    far = Child("far", "process_children:wait")
    for child in (near, far):
        child.channel.receive()
    channel.send(f"{near.pid} {far.pid}".encode())
    wait(payload, channel)


def path_of(payload: bytes, channel: Channel) -> None:
    channel.send("\n".join(sys.path).encode())


def main() -> None:
    """Be a front end that is killed: start a child with a folder, say its pid, then wait. Not run as a child."""
    folder = Path(sys.argv[1])
    child = Child("child", "process_children:wait", belongings=[str(folder)])
    child.channel.receive()
    if len(sys.argv) > 2:
        subprocess.Popen(["sleep", "600"], close_fds=False, pass_fds=(child.fileno(),))
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    time.sleep(600)


if __name__ == "__main__":
    main()
