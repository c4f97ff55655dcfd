"""SF110: a captured decoding step takes a state block for every sequence."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.outcome import NULL_BLOCKS
from staticfire.engine.config.rules.base import Example, Rule

OTHER_GRAPHS: Final = ("enforce_eager", "compilation_config", "optimization_level")
"""Options that decide whether whole decoding steps are captured at all."""


def check(draft: Draft) -> str | None:
    """Refuse more sequences than blocks, where steps are captured; the graphs themselves are not computed here."""
    if draft.device.type == "cpu" or not draft.model.recurrent_layers or any(map(draft.others.get, OTHER_GRAPHS)):
        return None
    blocks = draft.num_gpu_blocks
    usable = blocks - NULL_BLOCKS * draft.release.keeps_null_block_free
    if draft.max_num_seqs <= blocks or draft.kv_cache_memory_bytes == 0 or usable < draft.demand.blocks:
        return None  # what holds not even one request is another rule's
    return f"max_num_seqs={draft.max_num_seqs} is above the {blocks} blocks of the pool, and each sequence has a state"


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Fewer sequences, or as many blocks."""
    yield {"max_num_seqs": draft.num_gpu_blocks}
    if draft.num_gpu_blocks_override is not None:
        yield {"num_gpu_blocks_override": draft.max_num_seqs}
    elif draft.typed.kv_cache_memory_bytes is not None:
        yield {"kv_cache_memory_bytes": draft.max_num_seqs * draft.demand.block_bytes}


RULE = Rule(
    code="SF110",
    name="sequences-beyond-state-blocks",
    summary="With recurrent layers and captured graphs, `max_num_seqs` must not exceed the blocks of the pool.",
    why=(
        "A captured decoding step is laid out for `max_num_seqs` sequences, each of which has a recurrent state in a "
        "block of its own. vLLM refuses at start-up where there are fewer; run eagerly, sequences wait instead."
    ),
    fix="Lower `max_num_seqs`, or enlarge the pool.",
    since="0.1.0",
    says=("max_num_seqs={} is above the {} blocks of the pool", "exceeds available Mamba cache blocks ({})"),
    fields=(
        "scheduler.max_num_seqs",
        "cache.num_gpu_blocks_override",
        "cache.kv_cache_memory_bytes",
        "cache.block_size",
    ),
    example=Example(
        "jamba",
        {"num_gpu_blocks_override": 200, "max_num_seqs": 256},
        device="ampere",
        fix={"max_num_seqs": 200},
        release="vllm==0.33.0",
    ),
    check=check,
    proposals=proposals,
    reads_runtime=True,
    holds=lambda release: release.graph_takes_a_state_block_each,
)
