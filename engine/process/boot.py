"""The first code of a child: puts it on the lifeline, then calls what it is for. Started by `child.Child` only."""

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable

from staticfire.engine.process.child import kill_all
from staticfire.engine.process.frames import Channel
from staticfire.engine.process.lifeline import watch

Entry = Callable[[bytes, Channel], int | None]
"""What a child runs: the payload its parent gave, and the channel to it; returns the exit code."""


def main() -> None:
    """Run the entry named in the first argument, which `Child` wrote."""
    task = json.loads(sys.argv[1])
    # The parent's terminal is not ours, and a parent that wants an end closes the lifeline.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline = socket.socket(fileno=task["lifeline"])
    channel = Channel(socket.socket(fileno=task["channel"]))
    watch(lifeline, task["belongings"], kill_all)
    module, _, name = task["entry"].partition(":")
    try:
        payload = channel.receive()
    except EOFError:  # the parent died while it started us; the watchdog knows as well
        os._exit(1)
    code = 1
    try:
        entry: Entry = getattr(importlib.import_module(module), name)
        code = entry(payload, channel) or 0
    except BaseException:  # noqa: BLE001 - its last words, which the parent reads
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # Native libraries hold threads and state that their own ends trip over; nothing here needs an orderly one.
    os._exit(code)
