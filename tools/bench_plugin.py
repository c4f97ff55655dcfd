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

@pytest.mark.matrix("hybrid")
def test_cell(cell, cell_runner, example_prompts):
    with cell_runner() as engine:
        assert engine.generate_greedy(example_prompts, 16)
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
    found = []
    for _ in range(3):
        began = time.perf_counter()
        out, _ = _pytest(folder, "--collect-only", "-q", "test_big.py")
        found.append(time.perf_counter() - began)
        assert "10000 tests collected" in out, out
    return f"{min(found):.2f} s from start to end (limit 3 s)"


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
    """The hybrid matrix, one engine a cell, in one process and in two."""
    (folder / "test_hybrid.py").write_text(HYBRID)
    _pytest(folder, "-q", "test_hybrid.py", "-n", "2", "--dist=loadgroup")  # makes the checkpoints
    seconds: dict[str, float] = {}
    for name, more in (("serial", []), ("-n 2", ["-n", "2", "--dist=loadgroup"])):
        began = time.perf_counter()
        out, _ = _pytest(folder, "-q", "test_hybrid.py", *more)
        seconds[name] = time.perf_counter() - began
        assert " passed" in out, out
        assert " failed" not in out, out
    ratio = seconds["serial"] / seconds["-n 2"]
    return f"{seconds['serial']:.1f} s serial, {seconds['-n 2']:.1f} s on two workers: {ratio:.2f} times (limit 1.7)"


MEASURES: dict[str, Callable[[Path], str]] = {
    "import": importing,
    "collect": collecting,
    "idle": idle,
    "xdist": spread,
}


def _pytest(folder: Path, *arguments: str) -> tuple[str, float]:
    return _run([sys.executable, "-m", "pytest", "-p", "no:buildkite-test-collector", *arguments], folder)


def _run(command: Sequence[str], folder: Path) -> tuple[str, float]:
    """Output, and seconds of CPU time of the process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout + done.stderr, spent


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
