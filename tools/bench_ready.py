"""Measure the way of a ready response: encoded, decoded and applied to the front end's configuration, in microseconds.

Usage: python tools/bench_ready.py [--json]
"""

import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import bench_common
from bench_common import unit

from staticfire.engine.config import accept, model_info
from staticfire.engine.config.engine_config import ResolvedConfig
from staticfire.engine.ready.make import make_ready
from staticfire.engine.ready.response import ReadyResponse, decode, encode
from staticfire.engine.ready.settle import settle
from staticfire.engine.worker.settle import settle_worker
from staticfire.harness.models.catalog import find

MODEL: Final = "jamba-tiny-grow"
ENGINES: Final = (1, 2, 8)
GOAL_MICROSECONDS: Final = 20.0


microseconds = partial(bench_common.microseconds, rounds=25, calls=1000)


def travel(resolved: ResolvedConfig, responses: Sequence[ReadyResponse]) -> None:
    """All the way of the responses of all engines."""
    settle(resolved, [decode(encode(response)) for response in responses])


def measure(engines: int) -> dict[str, Any]:
    """One row: the cost for each engine, step by step and all together."""
    info = model_info(find(MODEL).hf, MODEL)
    resolved = accept({"data_parallel_size": engines}, info)
    settled = settle_worker(resolved)
    responses = [make_ready(settled, engine_index=index) for index in range(engines)]
    encoded = encode(responses[0])
    return {
        "engines": engines,
        "bytes": len(encoded),
        "make": round(microseconds(lambda: make_ready(settled, engine_index=0)), 2),
        "encode": round(microseconds(lambda: encode(responses[0])), 2),
        "decode": round(microseconds(lambda: decode(encoded)), 2),
        "apply": round(microseconds(lambda: settle(resolved, responses)) / engines, 2),
        "all": round(microseconds(lambda: travel(resolved, responses)) / engines, 2),
    }


def main() -> int:
    """Print the table; 1 where the goal is missed."""
    base = microseconds(unit)
    rows = [measure(engines) for engines in ENGINES]
    if "--json" in sys.argv:
        print(json.dumps({"unit_microseconds": round(base, 2), "rows": rows}, indent=2))
    else:
        print(f"unit (sum of 200 squares): {base:.2f} us of CPU; for each engine, in us of CPU:")
        print("".join(f"{name:>9}" for name in rows[0]))
        for row in rows:
            print("".join(f"{value:>9}" for value in row.values()))
    return int(max(row["all"] for row in rows) > GOAL_MICROSECONDS)


if __name__ == "__main__":
    sys.exit(main())
