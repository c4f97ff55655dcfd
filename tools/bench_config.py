"""Measure resolution and rules of one configuration, in microseconds and in units of a plain Python loop.

Usage: python tools/bench_config.py [--json]
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, Final

from staticfire.engine.config import model_info, resolve
from staticfire.harness.models.catalog import find

MODELS: Final = ("jamba-tiny", "jamba-1.5-mini", "qwen3.6-35b-a3b", "llama-tiny")
TYPED: Final[Mapping[str, Mapping[str, Any]]] = {
    "nothing typed": {},
    "six values typed": {
        "dtype": "float32",
        "block_size": 32,
        "enable_prefix_caching": True,
        "max_num_batched_tokens": 2048,
        "max_num_seqs": 64,
        "seed": 1,
    },
    "refused": {"enable_chunked_prefill": False, "mamba_block_size": 12, "quantization": "fp8"},
}
GOAL_MICROSECONDS: Final = 200.0


def microseconds(call: Callable[[], object], rounds: int = 15, calls: int = 200) -> float:
    """Median over rounds of the CPU time of one call."""
    times = []
    for _ in range(rounds):
        start = time.process_time_ns()
        for _ in range(calls):
            call()
        times.append((time.process_time_ns() - start) / calls / 1000)
    return median(times)


def unit() -> int:
    """A fixed piece of plain Python, to compare machines by."""
    return sum(i * i for i in range(200))


def main() -> int:
    """Print the table; 1 where the goal is missed."""
    base = microseconds(unit)
    rows: list[dict[str, Any]] = []
    for name in MODELS:
        model = model_info(find(name).hf, name)
        for label, typed in TYPED.items():
            cost = microseconds(lambda typed=typed, model=model: resolve(typed, model))  # type: ignore[misc]
            rows.append({"model": name, "typed": label, "microseconds": round(cost, 1), "ratio": round(cost / base, 2)})
    if "--json" in sys.argv:
        print(json.dumps({"unit_microseconds": round(base, 2), "rows": rows}, indent=2))
    else:
        print(f"unit (sum of 200 squares): {base:.2f} us of CPU")
        for row in rows:
            print(f"{row['model']:<18}{row['typed']:<18}{row['microseconds']:>8.1f} us{row['ratio']:>8.2f} units")
    return int(max(row["microseconds"] for row in rows) > GOAL_MICROSECONDS)


if __name__ == "__main__":
    sys.exit(main())
