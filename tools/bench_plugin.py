"""Measure what the pytest plugin costs and saves: `python tools/bench_plugin.py [import|collect|idle|xdist]…`.

Every figure is of processes of their own. What is compared is run in turns, and the least of each counts: the plugin
cannot make a machine quieter, only a run longer.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_common import busy

ROUNDS = 7
BIG = """
[matrix]
name = "big"
description = "Ten thousand cells."

[axes]
model = ["jamba-tiny"]
seed = {seeds}
max_num_seqs = {sequences}
"""
CELLS = 'import pytest\n\n@pytest.mark.matrix("big.toml")\ndef test_cell(cell): ...\n'
IDLE = "import pytest\n\n@pytest.mark.parametrize('n', range(2000))\ndef test_it(n):\n    assert n >= 0\n"
HYBRID = """
import pytest

@pytest.mark.matrix("hybrid"{selection})
def test_cell(cell, cell_runner, example_prompts):
    with cell_runner() as engine:
        assert engine.generate_greedy(example_prompts, 16)
"""
IN_PROCESS = "".join(
    f', {axis}="unset"' for axis in ("enable_multiprocessing", "tensor_parallel_size", "data_parallel_size")
)
METER = """
import os
import resource

def pytest_sessionfinish():
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    with open("cpu-" + os.environ.get("PYTEST_XDIST_WORKER", "main"), "w") as file:
        print(sum(one.ru_utime + one.ru_stime for one in used), file=file)
"""


def main(names: Sequence[str]) -> int:
    """Measure what is named, or everything."""
    with tempfile.TemporaryDirectory() as folder:
        for name in names or list(MEASURES):
            print(f"{name}: {MEASURES[name](Path(folder))}", flush=True)
    return 0


def importing(folder: Path) -> str:
    """What every pytest of this Python pays."""
    what = "import staticfire.harness.plugin.entry"
    code = f"import time, pytest; t = time.perf_counter(); {what}; print(time.perf_counter() - t)"
    found = [float(_run([sys.executable, "-c", code], folder)[0]) for _ in range(ROUNDS)]
    return f"{min(found) * 1000:.1f} ms (limit 30 ms)"


def collecting(folder: Path) -> str:
    """Ten thousand cells."""
    seeds, sequences = list(range(100)), list(range(1, 101))
    (folder / "big.toml").write_text(BIG.format(seeds=seeds, sequences=sequences))
    (folder / "test_big.py").write_text(CELLS)
    seconds, used = [], []
    for _ in range(3):
        began = time.perf_counter()
        out, spent = _pytest(folder, "--collect-only", "-q", "test_big.py")
        seconds.append(time.perf_counter() - began)
        used.append(spent)
        assert "10000 tests collected" in out, out
    return f"{min(seconds):.2f} s from start to end (limit 3 s), {min(used):.2f} s of CPU"


def idle(folder: Path) -> str:
    """Two thousand tests that use none of it."""
    (folder / "test_idle.py").write_text(IDLE)
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(ROUNDS):
        for name, more in (("without", ["-p", "no:staticfire"]), ("with", [])):
            out, spent = _pytest(folder, "-q", "test_idle.py", *more)
            assert "2000 passed" in out, out
            seconds[name].append(spent)
    one, other = min(seconds["with"]), min(seconds["without"])
    return f"{other:.2f} s of CPU without, {one:.2f} s with: {100 * (one / other - 1):+.1f} % (limit 2 %)"


def spread(folder: Path) -> str:
    """The hybrid matrix, one engine a cell, in one process and on two workers: whole, and what runs in one process.

    Neither is told how many threads torch may have, as a user would not. The clock needs an idle machine. A busy one
    can say the processor time of the serial run over that of the busier worker, processes that their engines started
    included; there each process has one thread, for threads that spin beside other work take many times their due.
    """
    threads = "1" if busy(os.getloadavg()[0], os.cpu_count() or 1) else None
    folder = folder / "xdist"  # the others are not to be metered
    folder.mkdir()
    (folder / "conftest.py").write_text(METER)
    (folder / "test_hybrid.py").write_text(HYBRID.format(selection=IN_PROCESS))
    _hybrid(folder, threads)  # makes the checkpoints
    found = []
    for name, selection in (("whole", ""), ("in process", IN_PROCESS)):
        (folder / "test_hybrid.py").write_text(HYBRID.format(selection=selection))
        serial, alone = _hybrid(folder, threads)
        parallel, workers = _hybrid(folder, threads, "-n", "2", "--dist=loadgroup")
        busiest = max(workers.values())
        found.append(
            f"{name}: {serial:.1f} s serial, {parallel:.1f} s on two workers: {serial / parallel:.2f} times; CPU "
            f"{alone['main']:.1f} s serial, {busiest:.1f} s in the busier worker: {alone['main'] / busiest:.2f} times"
        )
    told = "" if threads is None else "; busy machine: one thread a process, and the clock says nothing"
    return "; ".join(found) + f" (limit 1.7{told})"


def _hybrid(folder: Path, threads: str | None, *more: str) -> tuple[float, dict[str, float]]:
    """Seconds by the clock, and seconds of CPU of each process that ran tests."""
    for old in folder.glob("cpu-*"):
        old.unlink()
    began = time.perf_counter()
    out, _ = _pytest(folder, "-q", "test_hybrid.py", *more, threads=threads)
    seconds = time.perf_counter() - began
    assert " failed" not in out, out
    assert " passed" in out, out
    used = {file.name.removeprefix("cpu-"): float(file.read_text()) for file in folder.glob("cpu-*")}
    return seconds, {name: cpu for name, cpu in used.items() if name != "main" or len(used) == 1}


MEASURES: dict[str, Callable[[Path], str]] = {
    "import": importing,
    "collect": collecting,
    "idle": idle,
    "xdist": spread,
}


def _pytest(folder: Path, *arguments: str, threads: str | None = "1") -> tuple[str, float]:
    command = [sys.executable, "-m", "pytest", "-p", "no:buildkite-test-collector", *arguments]
    return _run(command, folder, threads)


def _run(command: Sequence[str], folder: Path, threads: str | None = "1") -> tuple[str, float]:
    """Output, and seconds of CPU time of the process and its children; `threads` None leaves them as they are here."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    if threads is not None:
        environment |= {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout + done.stderr, spent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
