"""Measure what it costs to have the engine in a process of its own: throughput, and the start.

`python tools/bench_processes.py` gives an engine in this process and one in another the same checkpoint, prompts,
batch and number of new tokens, in interleaved rounds, and prints a table for docs/benchmarks.md. Throughput is
compared by the median of the rounds' ratios.

A start is measured in fresh interpreters: seconds from `LLM(...)` to ready with a separate engine, less those that a
bare interpreter takes to import torch, each the median of interleaved rounds. It refuses a busy machine unless
--force is given.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from bench_common import refuses
from bench_engine import Work, engine_side, open_engine, ratio, scenarios

from staticfire.harness.models.make import ensure

MODEL = "jamba-tiny"
MOST_COST = 0.15
"""Share of the throughput of an engine in this process that a process boundary may cost."""

MOST_START_S = 2.5
"""Seconds from the call to ready, beyond an interpreter that imports torch."""

IMPORT = "import time; since = time.perf_counter(); import torch; print(time.perf_counter() - since)"
START = """
import sys, time
from staticfire.engine.llm import LLM
since = time.perf_counter()
llm = LLM(sys.argv[1], dtype="float32", enable_multiprocessing=True)
print(time.perf_counter() - since)
llm.close()
"""


def throughput(folder: Path, work: Work, rounds: int) -> list[tuple[float, float]]:
    """(separate, in process) seconds of every round, after one that is thrown away."""
    with open_engine(folder) as here, open_engine(folder, enable_multiprocessing=True) as there:
        ours, theirs = engine_side(there), engine_side(here)
        pairs = [(ours(work), theirs(work)) for _ in range(rounds + 1)]
    return pairs[1:]


def starts(folder: Path, rounds: int) -> list[tuple[float, float]]:
    """(start of a separate engine, import of torch) seconds of every round, after one that is thrown away."""
    pairs = [(_timed(START, str(folder)), _timed(IMPORT)) for _ in range(rounds + 1)]
    return pairs[1:]


def _timed(code: str, *arguments: str) -> float:
    command = [sys.executable, "-c", code, *arguments]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a goal was missed, 2 if the machine is busy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7, help="interleaved rounds after the warm-up (default 7)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="threads of both sides (default: cores)")
    parser.add_argument("--force", "--busy", action="store_true", help="measure even on a busy machine")
    options = parser.parse_args(argv)
    if refuses(force=options.force):
        return 2
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    torch.set_num_threads(options.threads)
    folder = ensure(MODEL)
    work = scenarios(json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"])["equal lengths"]
    pairs = throughput(folder, work, options.rounds)
    separate, here = (statistics.median(pair[side] for pair in pairs) for side in (0, 1))
    share = ratio(pairs)
    begun = starts(folder, options.rounds)
    start, importing = (statistics.median(pair[side] for pair in begun) for side in (0, 1))
    print("| | in process | separate | |")
    print("|---|--:|--:|--:|")
    print(
        f"| {MODEL}, {len(work.prompts)} prompts | {work.tokens / here:,.0f} tokens/s | "
        f"{work.tokens / separate:,.0f} tokens/s | **{share:.2f}** |"
    )
    print("\n| | import of torch | start to ready | |")
    print("|---|--:|--:|--:|")
    print(f"| {MODEL} | {importing:.2f} s | {start:.2f} s | **{start - importing:+.2f} s** |")
    faults = []
    if share < 1 - MOST_COST:
        faults.append(f"a process boundary costs {1 - share:.0%} of the throughput, the goal is {MOST_COST:.0%}")
    if start - importing > MOST_START_S:
        faults.append(f"a start takes {start - importing:.1f} s beyond torch, the goal is {MOST_START_S} s")
    for line in faults:
        print(line, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
