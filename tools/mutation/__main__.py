"""Mutate the Triton kernels and see whether their parity tests notice: `python tools/mutation`.

A sample of mutants is drawn from a seed, spread over every kernel; each runs the parity tests that launch its kernel,
until the first failure. Prints a table, and the survivors with their difference; exits 1 if fewer than 95 % of them, or
fewer than 60, were killed.

No file of the checkout is touched: a mutant is written to a folder of its own, and an import hook hands it out in the
module's place. One that computes what the kernel computes does not count; it stands in `equivalent.toml` with the
reason.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from mutation.report import Outcome, verdict, write
from mutation.runs import PARITY, SLACK_S, Fate, Suite, prepare, record, try_mutant
from mutation.sample import ROOT, Mutant, callers, draw, every_mutant, reasons

SAMPLE, SEED = 96, 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw, run, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--sample", type=int, default=SAMPLE, help="mutants to draw [%(default)s]")
    parser.add_argument("--seed", type=int, default=SEED, help="of the sample [%(default)s]")
    parser.add_argument("-j", "--jobs", type=int, default=min(4, os.cpu_count() or 1), help="at a time [%(default)s]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants whose name contains this")
    parser.add_argument("--list", action="store_true", help="print the sample and run nothing")
    parser.add_argument("--out", type=Path, help="write the fates as JSON")
    chosen = parser.parse_args(arguments)
    candidates = every_mutant()
    equivalent = reasons(candidates)
    sample = [m for m in draw(candidates, chosen.sample, chosen.seed) if chosen.only in m.name]
    if chosen.list:
        print(f"{len(sample)} of {len(candidates)} mutants")
        print("\n".join(f"{'= ' if m in equivalent else '  '}{m.name}" for m in sample))
        return 0
    prepare()
    with ThreadPoolExecutor(chosen.jobs) as pool:
        outcomes = _run([m for m in sample if m not in equivalent], pool, {m.folder: callers(m.source) for m in sample})
    skipped = {m: equivalent[m] for m in sample if m in equivalent}
    if chosen.out:
        write(outcomes, skipped, chosen.out)
    return verdict(outcomes, skipped, partial=bool(chosen.only))


def _run(
    sample: Sequence[Mutant], pool: ThreadPoolExecutor, launched_by: dict[str, dict[str, frozenset[str]]]
) -> list[Outcome]:
    started = time.perf_counter()
    folders = {mutant.folder for mutant in sample}
    files = [file for file in sorted((ROOT / PARITY).glob("test_*.py")) if _mentions(file, folders)]
    found = list(pool.map(record, [str(file.relative_to(ROOT)) for file in files]))
    tests = Suite(
        {test: s for part in found for test, s in part.seconds.items()},
        {test: names for part in found for test, names in part.launches.items()},
    )
    print(f"{len(tests.seconds)} tests without a mutant: {time.perf_counter() - started:.0f} s", flush=True)

    def run(mutant: Mutant) -> Outcome:
        kernels = frozenset(f"{mutant.folder}.{name}" for name in launched_by[mutant.folder][mutant.function])
        own = tests.of(kernels)
        if not own:
            return Outcome(mutant, Fate(False, "no test launches it", "", 0.0))
        fate = try_mutant(mutant, own, SLACK_S + 10 * sum(tests.seconds[test] for test in own))
        word = "killed  " if fate.killed else "SURVIVED"
        print(f"{word} {mutant.name} ({fate.how}, {fate.seconds:.0f} s)", flush=True)
        return Outcome(mutant, fate)

    return list(pool.map(run, sample))


def _mentions(file: Path, folders: set[str]) -> bool:
    text = file.read_text()
    return any(f"kernels.{folder}" in text for folder in folders)


if __name__ == "__main__":
    sys.exit(main())
