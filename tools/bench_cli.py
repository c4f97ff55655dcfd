"""Measure how long the light verbs take to start, beside a bare interpreter.

`python tools/bench_cli.py` runs each command in turn, round after round, so that a slow moment of the machine falls on
all of them alike, and prints medians and the ratio to `python -c pass` as a table for docs/benchmarks.md.
It refuses a busy machine, for its numbers would be noise.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench_common import busy

BASELINE = "python -c pass"
COMMANDS: Mapping[str, Sequence[str]] = {
    BASELINE: ["-c", "pass"],
    "staticfire --help": ["-m", "staticfire", "--help"],
    "staticfire matrix small.toml": ["-m", "staticfire", "matrix", "small.toml"],
    "staticfire matrix hybrid": ["-m", "staticfire", "matrix", "hybrid"],
    "staticfire explain jamba-tiny": ["-m", "staticfire", "explain", "jamba-tiny"],
}
SMALL = """
[matrix]
name = "small"
description = "Two cells"
[axes]
model = ["jamba-tiny"]
block_size = [16, 32]
"""
WHOLE_JOBS = frozenset({"staticfire matrix hybrid"})
"""More than start-up: builds, verifies and judges every cell of a real matrix. Reported, not limited."""
LIMIT_SECONDS = 0.25


def seconds(arguments: Sequence[str], folder: str) -> float:
    """Run the interpreter once and return the wall-clock time it took.

    Raises:
        RuntimeError: the command failed, so its time means nothing.
    """
    # A user's interpreter keeps what it compiled.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    taken = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return taken


def measure(rounds: int) -> dict[str, list[float]]:
    """Time every command once a round, after one round that warms the disk cache and is thrown away."""
    samples: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "small.toml").write_text(SMALL)
        for number in range(rounds + 1):
            for name, arguments in COMMANDS.items():
                taken = seconds(arguments, folder)
                if number:
                    samples[name].append(taken)
    return samples


def table(samples: Mapping[str, Sequence[float]]) -> str:
    """Render the medians as a Markdown table, with the ratio to the bare interpreter."""
    base = statistics.median(samples[BASELINE])
    lines = ["| command | median ms | fastest ms | ratio to `python -c pass` |", "|---|---|---|---|"]
    for name, taken in samples.items():
        median = statistics.median(taken)
        lines.append(f"| `{name}` | {median * 1000:.0f} | {min(taken) * 1000:.0f} | {median / base:.1f} |")
    return "\n".join(lines)


def main() -> int:
    """Measure and print; return 1 when a verb is over the limit and 2 when the machine is busy."""
    parser = argparse.ArgumentParser(description="Start-up time of the light verbs.")
    parser.add_argument("--rounds", type=int, default=15, help="measurements of each command (15)")
    parser.add_argument("--busy", action="store_true", help="measure on a busy machine all the same")
    options = parser.parse_args()
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    if busy(load, cores) and not options.busy:
        print(
            f"bench_cli: the machine is busy (load {load:.1f} on {cores} cores); wait, or pass --busy", file=sys.stderr
        )
        return 2
    samples = measure(options.rounds)
    print(f"Start-up, {options.rounds} interleaved rounds, {cores} cores, Python {sys.version.split()[0]}:\n")
    print(table(samples))
    limited = {name: taken for name, taken in samples.items() if name not in WHOLE_JOBS}
    slow = [name for name, taken in limited.items() if statistics.median(taken) > LIMIT_SECONDS]
    if slow:
        print(f"\nover {LIMIT_SECONDS} s: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
