"""Plant faults in copies of the package and see whether the hybrid matrix turns red: `python tools/planted`.

Every fault of `faults.toml` is replayed by `staticfire run hybrid --cell …` in a copy of the package of its own, so no
file of the checkout is touched. The cell must fail, and the relation that the table names must say what the table says.
Before, all those cells must pass in a copy without a fault. Prints a table; exits 1 if a fault is not seen.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import TimeoutExpired

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from planted.replay import LIMIT_S, Fate, ReplayError, cells, copy_of_the_package, run, try_fault
from planted.table import Fault, TableError, read
from staticfire.harness.matrix.workload import RELATION_NAMES


def main(arguments: Sequence[str] | None = None) -> int:
    """Read, check, replay, report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, default=min(4, os.cpu_count() or 1), help="at a time [%(default)s]")
    parser.add_argument("--only", default="", metavar="TEXT", help="only faults whose name contains this")
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    chosen = parser.parse_args(arguments)
    try:
        faults = [fault for fault in read(relations=RELATION_NAMES) if chosen.only in fault.name]
        if chosen.list:
            print("\n".join(f"{fault.name} | {fault.seen_by} | {fault.cell} | {fault.meets}" for fault in faults))
            return 0
        sound(faults, chosen.jobs)
    except (TableError, ReplayError) as error:
        print(error, file=sys.stderr)
        return 2
    with ThreadPoolExecutor(chosen.jobs) as pool:
        fates = list(pool.map(_replay, faults))
    return report(faults, fates)


def sound(faults: Sequence[Fault], jobs: int) -> None:
    """Demand that the matrix has all cells, and that they pass without a fault.

    Raises:
        ReplayError: It has not, or one does not.
    """
    wanted = sorted({fault.cell for fault in faults})
    with copy_of_the_package() as root:
        missing = set(wanted) - cells(root)
        if missing:
            raise ReplayError(f"the hybrid matrix has no cell {', '.join(sorted(missing))}")
        results = run(root, wanted, jobs=jobs)
    red = {cell: result for cell, result in results.items() if result["verdict"] != "passed"}
    if red or len(results) < len(wanted):
        raise ReplayError(f"without a fault {len(results)} of {len(wanted)} cells ran, and these do not pass: {red}")
    print(f"without a fault {len(wanted)} cells pass", flush=True)


def _replay(fault: Fault) -> Fate:
    try:
        fate = try_fault(fault)
    except (ReplayError, TableError) as error:
        fate = Fate(False, "none", str(error), 0.0)
    except TimeoutExpired:
        fate = Fate(False, "none", f"no verdict within {LIMIT_S:g} s", LIMIT_S)
    word = "seen    " if fate.seen else "NOT SEEN"
    print(f"{word} {fault.name} ({fate.verdict}, {fate.seconds:.0f} s): {fate.message.splitlines()[0]}", flush=True)
    return fate


def report(faults: Sequence[Fault], fates: Sequence[Fate]) -> int:
    """Print the table; 0 if every fault was seen."""
    print("\n| fault | verdict | cell | seen by | seconds |\n|---|---|---|---|---|")
    for fault, fate in zip(faults, fates, strict=True):
        verdict = fate.verdict if fate.seen else f"{fate.verdict}, NOT SEEN"
        print(f"| {fault.name} | {verdict} | `{fault.cell}` | {fault.seen_by} | {fate.seconds:.0f} |")
    seen = sum(fate.seen for fate in fates)
    print(f"\n{seen} of {len(faults)} planted faults turn the hybrid matrix red for the reason that the table gives")
    return 0 if faults and seen == len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
