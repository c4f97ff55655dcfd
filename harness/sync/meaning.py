"""What the front end's one value of each field means among several engines, stated apart from the engine's own table.

The engine declares a merge for each field of its ready response, and merges by that declaration. An audit that reads
the same declaration cannot see that it is wrong, so the meaning is said here once more, by hand.
"""

from typing import Final

from staticfire.engine.ready.response import TABLE
from staticfire.engine.ready.response import Merge as Declared
from staticfire.harness.sync.base import Merge

NAMES: Final[dict[Declared, Merge]] = {
    Declared.MINIMUM: "minimum",
    Declared.SUM_OVER_ENGINES: "sum_over_engines",
    Declared.MUST_AGREE: "must_agree",
    Declared.AS_RESOLVED: "as_resolved",
    Declared.PER_ENGINE: "per_engine",
}

_BY_MERGE: Final[dict[Merge, tuple[str, ...]]] = {
    # A request may go to any engine, so it has to fit into the one that takes least.
    "minimum": ("max_model_len",),
    # Each engine has a pool of its own; the deployment has all of them.
    "sum_over_engines": ("num_gpu_blocks", "kv_cache_size_tokens", "kv_cache_max_concurrency"),
    # All engines load one model, so pages, states and groups are of one layout.
    "must_agree": (
        "block_size",
        "mamba_block_size",
        "kernel_block_size",
        "page_size_bytes",
        "mamba_page_size_padded",
        "attention_bytes_per_token",
        "state_bytes",
        "num_groups",
        "dp_stats_address",
    ),
    # The front end resolves these before anybody starts, and no worker may change them.
    "as_resolved": (
        "dtype",
        "cache_dtype",
        "mamba_cache_dtype",
        "mamba_ssm_cache_dtype",
        "mamba_cache_mode",
        "enable_prefix_caching",
        "max_num_seqs",
        "max_num_batched_tokens",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_size",
    ),
    # Engines are told apart by these.
    "per_engine": ("version", "data_parallel_rank"),
}
MEANING: Final[dict[str, Merge]] = {name: merge for merge, names in _BY_MERGE.items() for name in names}
"""Field of the ready response -> what becomes of several engines' values."""


def misdeclared() -> dict[str, tuple[str, str]]:
    """Field -> the merge that the engine declares and what it means, where these differ or no meaning is stated."""
    return {
        name: (NAMES[travels.merge], MEANING.get(name, "not stated"))
        for name, travels in TABLE.items()
        if NAMES[travels.merge] != MEANING.get(name)
    }
