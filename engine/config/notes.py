"""What a reader should know though nothing is refused."""

from collections.abc import Iterator

from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.outcome import NULL_BLOCKS


def notes(draft: Draft) -> Iterator[str]:
    """Give the remarks on a settled configuration, in no order of importance."""
    model, aligned, need = draft.model, draft.alignment, draft.demand
    typed_state = draft.typed.mamba_ssm_cache_dtype
    if typed_state not in {None, "auto", model.ssm_dtype} and model.ssm_dtype is not None:
        yield (
            f"mamba_ssm_cache_dtype={typed_state} overrides {model.ssm_dtype}: "
            f"{model.ssm_dtype_because or 'config.json declares it'}"
        )
    if draft.mamba_cache_mode == "align" and aligned.block_size > draft.max_num_batched_tokens:
        yield (
            f"a step holds max_num_batched_tokens={draft.max_num_batched_tokens} tokens, a block "
            f"{aligned.block_size}: a prefill reaches a cacheable boundary only after several steps"
        )
    if draft.kv_cache_memory_bytes > draft.device.memory_bytes:
        yield (
            f"the pool of {in_bytes(draft.kv_cache_memory_bytes)} that one request of max_model_len="
            f"{draft.max_model_len} tokens needs is more than {draft.device.name}'s "
            f"{in_bytes(draft.device.memory_bytes)}"
        )
    least = need.attention_groups + need.recurrent_groups * need.recurrent_blocks
    at_once = max(0, draft.num_gpu_blocks - NULL_BLOCKS) // least
    if 0 < at_once < draft.max_num_seqs:
        yield (
            f"max_num_seqs={draft.max_num_seqs}, but each needs at least {least} of the pool's "
            f"{draft.num_gpu_blocks - NULL_BLOCKS} blocks: at most {at_once} run at once"
        )
