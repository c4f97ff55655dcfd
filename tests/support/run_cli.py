"""Starts `staticfire run` with fake jobs, as a user would: a matrix in a file, a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from waiting import soon_gone

FAKES = Path(__file__).parents[1] / "harness" / "run" / "fakes"

MATRIX = """
[matrix]
name = "toy"
description = "Cells that do what FAKE_ACTIONS says of their seed."

[axes]
model = ["llama-tiny"]
seed = {seeds}
"""


def with_fakes() -> str:
    """PYTHONPATH as it is, and the folder of fake jobs."""
    return os.pathsep.join(filter(None, [str(FAKES), os.environ.get("PYTHONPATH")]))


class Toy:
    """A matrix of `count` cells in a folder, run with fake jobs."""

    def __init__(self, folder: Path, count: int = 6) -> None:
        self.folder = folder
        self.log = folder / "fake.log"
        self.out = folder / "out"
        self.stdout = subprocess.PIPE
        self.ids = [f"llama-tiny-seed-{seed}" for seed in range(count)]
        self.file = folder / "toy.toml"
        self.file.write_text(MATRIX.format(seeds=list(range(count))))

    def environment(self, default: str = "pass", **actions: str) -> dict[str, str]:
        """`seed3="fail"` makes the cell with seed 3 fail."""
        return {
            **os.environ,
            "PYTHONPATH": with_fakes(),
            "FAKE_LOG": str(self.log),
            "FAKE_DEFAULT": default,
            "FAKE_ACTIONS": json.dumps({name.removeprefix("seed"): action for name, action in actions.items()}),
        }

    def arguments(self, *options: str) -> list[str]:
        return ["run", str(self.file), "--job", "fake_jobs:by_seed", "--out", str(self.out), *options]

    def start(self, *options: str, default: str = "pass", **actions: str) -> subprocess.Popen[str]:
        """Start a run in a process and a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "staticfire", *self.arguments(*options)],
            env=self.environment(default, **actions),
            stdout=self.stdout,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *options: str, default: str = "pass", **actions: str) -> tuple[int, str, str]:
        """Run to the end; (exit code, stdout, stderr)."""
        process = self.start(*options, default=default, **actions)
        out, errors = process.communicate(timeout=120)
        return process.returncode, out, errors

    def starts(self) -> list[tuple[str, int]]:
        """(cell id, worker pid) of every cell begun, in order."""
        if not self.log.exists():
            return []
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [(line[1], int(line[2])) for line in lines if line[0] == "start"]

    def wait_for_starts(self, count: int) -> None:
        """Wait until `count` cells have been begun."""
        for _ in range(1200):
            if len(self.starts()) >= count:
                return
            time.sleep(0.05)
        raise AssertionError(f"only {self.starts()} began")

    def journaled(self) -> list[tuple[str, str]]:
        """(id, verdict) in the journal, whole lines only."""
        lines = (self.out / "journal.jsonl").read_bytes().split(b"\n")[1:-1]
        return [(record["id"], record["verdict"]) for record in map(json.loads, lines)]

    def results(self) -> dict[str, str]:
        """Id -> verdict of results.json."""
        document = json.loads((self.out / "results.json").read_text())
        return {cell["id"]: cell["verdict"] for cell in document["cells"]}

    def no_worker_left(self) -> bool:
        """Whether every worker ends soon."""
        return all(soon_gone(pid) for _, pid in self.starts())


def interrupt(process: subprocess.Popen[str], number: int = signal.SIGINT) -> None:
    """Send a signal to the whole foreground group, as Ctrl-C does."""
    os.killpg(process.pid, number)
