"""Measure resolution and rules of one configuration, in microseconds and in units of a plain Python loop.

Usage: python tools/bench_config.py [--json]
"""

import json
import sys
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from bench_common import microseconds, unit

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
ROUNDS, CALLS = 15, 200
GOAL_MICROSECONDS: Final = 200.0


def main() -> int:
    """Print the table; 1 where the goal is missed."""
    base = microseconds(unit, ROUNDS, CALLS)
    rows: list[dict[str, Any]] = []
    for name in MODELS:
        model = model_info(find(name).hf, name)
        for label, typed in TYPED.items():
            cost = microseconds(partial(resolve, typed, model), ROUNDS, CALLS)
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
