"""A real start of two engines of two ranks, in which one process is killed at one moment. Run as a script.

`python victims.py CHECKPOINT WHO WHEN` prints one line of JSON: what the front end was told and after how long. When
the front end itself is the victim it prints nothing.
"""

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.config import accept, model_info
from staticfire.engine.errors import EngineDeadError, EngineError
from staticfire.engine.exchange import NewRequest
from staticfire.engine.loader.index import read_hf_config
from staticfire.engine.sampling_params import SamplingParams
from staticfire.engine.wire.messages import Progress

FRONT_END = "front end"
COORDINATOR = "coordinator"
CORES = ("engine core 0", "engine core 1")
WORKERS = ("worker 0.0", "worker 0.1", "worker 1.0", "worker 1.1")
EVERYONE = (FRONT_END, COORDINATOR, *CORES, *WORKERS)
OF_CORES = ("started", "said hello", "imported", "joined the coordinator")
"""Phases in which an engine has no workers yet."""
OF_RANKS = ("spawned", "rank imported", "joined", "rank loaded", "aligned", "ready")
LATER = ("answered", "idle", "generating")
MOMENTS = (*OF_CORES, *OF_RANKS, *LATER)

FOUND_S = 60.0
"""Longer than anything here takes to be found, however busy the machine; a test's own limit is shorter."""


def exists(who: str, when: str) -> bool:
    """Whether there is such a process at that moment."""
    return who not in WORKERS or when not in OF_CORES


class Killer:
    """Kills the victim at its moment, and remembers when that was and when its death was first told."""

    def __init__(self, who: str, when: str) -> None:
        self._who = who
        self._when = when
        self.since = 0.0
        self.said = 0.0

    def hear(self, engine: int, progress: Progress) -> None:
        """Told of every phase of the start."""
        phase = progress.phase
        if progress.rank is not None and phase in {"imported", "loaded"}:
            phase = f"rank {phase}"
        # A phase of another's start is no moment of the victim's; the front end and the coordinator see them all.
        mine = self._who in (FRONT_END, COORDINATOR) or (
            self._who == f"engine core {engine}"
            if self._who in CORES
            else self._who.startswith(f"worker {engine}.") and progress.rank in (None, int(self._who[-1]))
        )
        if phase == self._when and mine:
            self.kill()

    def kill(self) -> None:
        """Kill it now, if that was not done."""
        if not self.since:
            pid = os.getpid() if self._who == FRONT_END else _pid_of(self._who)
            self.since = time.monotonic()
            os.kill(pid, signal.SIGKILL)


def _pid_of(name: str) -> int:
    for process in psutil.Process().children(recursive=True):
        if f'"name": "{name}"' in " ".join(process.cmdline()):
            return int(process.pid)
    raise LookupError(name)


def _start(folder: Path, killer: Killer) -> ProcessClient:
    typed = {"tensor_parallel_size": 2, "data_parallel_size": 2, "num_gpu_blocks_override": 200}
    resolved = accept(typed, model_info(read_hf_config(folder), str(folder)), for_running=True)
    return ProcessClient(resolved, on_progress=killer.hear)


def _idle(client: ProcessClient) -> None:
    deadline = time.monotonic() + FOUND_S
    while time.monotonic() < deadline:
        for why in client.dead().values():
            raise EngineDeadError(why)
        time.sleep(0.01)


def _generate(client: ProcessClient, killer: Killer) -> None:
    """Eight requests, and death when each engine has said that it computes."""
    params = SamplingParams(max_tokens=60, ignore_eos=True)
    client.add([NewRequest(str(number), [number + 1, 2, 3], params) for number in range(8)])
    lost: dict[str, EngineDeadError] = {}
    done: set[str] = set()
    while len(lost) + len(done) < 8:
        if all(stats.generation_tokens for stats in client.stats().values()):
            killer.kill()
        done |= {request.request_id for request in client.step()}
        lost |= client.take_lost()
        if lost and not killer.said:
            killer.said = time.monotonic()
    if lost:
        error = next(iter(lost.values()))
        raise EngineDeadError(str(error), who=error.who, lost=sorted(lost))


def _serves(client: ProcessClient) -> bool:
    """Whether whoever is left computes."""
    try:
        client.add([NewRequest("after", [1, 2, 3], SamplingParams(max_tokens=3, ignore_eos=True))])
        while client.has_unfinished():
            if "after" in {request.request_id for request in client.step()}:
                return True
    except EngineError:
        return False
    return False


def main(arguments: Sequence[str]) -> None:
    """Start, kill, tell."""
    folder, who, when = Path(arguments[0]), arguments[1], arguments[2]
    killer = Killer(who, when)
    told: dict[str, Any] = {"error": "", "text": "", "lost": [], "serves": None}
    warnings.simplefilter("error", RuntimeWarning)
    client = None
    try:
        client = _start(folder, killer)
        if when == "generating":
            _generate(client, killer)
        else:
            killer.kill()
            _idle(client)
    except (EngineError, RuntimeWarning) as error:
        told |= {"error": type(error).__name__, "text": str(error), "lost": list(getattr(error, "lost", ()))}
    told["seconds"] = (killer.said or time.monotonic()) - killer.since
    if client is not None:
        told["serves"] = _serves(client)
        since = time.monotonic()
        client.close()
        told["close_s"] = time.monotonic() - since
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
