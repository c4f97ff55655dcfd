"""What a reader should know though nothing is refused."""

from collections.abc import Iterator

from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft
from staticfire.engine.config.kernel_blocks import attention_backend
from staticfire.engine.config.outcome import NULL_BLOCKS


def notes(draft: Draft) -> Iterator[str]:
    """Give the remarks on a settled configuration, in no order of importance."""
    yield from _notes_of_the_release(draft)
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
    if draft.unknown:
        return
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


def _notes_of_the_release(draft: Draft) -> Iterator[str]:
    """What the imitated release does differently where a fact of the machine decides that nobody has told."""
    release, typed = draft.release, draft.typed.mamba_cache_mode
    if typed is not None and not release.heeds_cache_mode and draft.model.recurrent_layers:
        yield f"{release.name} takes mamba_cache_mode={typed} and ignores it"
    if draft.kernel_blocks.smallest == release.wide_head_block and attention_backend(draft.others) is None:
        yield (
            f"the attention backend is FLASH_ATTN; where flashinfer-python is installed, {release.name} takes "
            f"FLASHINFER on {draft.device.name}, which has smaller blocks: --attention-backend FLASHINFER shows them"
        )
