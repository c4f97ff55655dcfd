"""The page arithmetic in lines of numbers, for people."""

from staticfire.engine.config.chain import in_bytes
from staticfire.engine.config.draft import Draft


def arithmetic_lines(draft: Draft) -> tuple[str, ...]:
    """Show how the block size and the pool came about.

    Args:
        draft: Settled, run-time values included.

    Returns:
        A few lines, each a formula with its numbers.
    """
    pool = () if draft.unknown else _pool_lines(draft)
    return (*_alignment_lines(draft), *pool)


def _alignment_lines(draft: Draft) -> list[str]:
    model, a, tp = draft.model, draft.alignment, draft.tensor_parallel_size
    lines: list[str] = []
    if model.attention_layers:
        heads = max(1, model.num_kv_heads // tp)
        size = a.attention_bytes // (2 * heads * model.head_dim)
        lines.append(
            f"attention, one token of one layer: 2 x {heads} KV heads x {model.head_dim} x {size} B "
            f"({draft.kv_cache_dtype}) = {a.attention_bytes} B"
        )
    if model.state_shapes is not None:
        dtypes = {"conv": draft.mamba_cache_dtype, "ssm": draft.mamba_ssm_cache_dtype}
        parts = " + ".join(
            f"{s.role} {' x '.join(map(str, s.shape))} {dtypes[s.role]}"
            for s in model.state_shapes(tp, draft.state_tokens)
        )
        lines.append(f"state of one layer: {parts} = {a.state_bytes} B")
    if not (a.attention_bytes and a.state_bytes):
        lines.append(f"block size {a.block_size}: no alignment is needed; page {a.page_size_bytes} B")
        return lines
    tokens = a.state_bytes / a.attention_bytes
    lines.append(f"tokens whose keys and values cover a state: {a.state_bytes} / {a.attention_bytes} = {tokens:.1f}")
    change = f"{draft.block_size} -> {a.block_size}" if a.block_size != draft.block_size else f"{a.block_size}"
    lines.append(
        f"block size: {change} (up to a multiple of {a.step}; kernel block {draft.kernel_blocks.smallest}, "
        f"block_size {draft.block_size})"
    )
    lines += [f"block size: {reason}" for reason in draft.kernel_blocks.because]
    pad = (a.page_size_bytes - a.state_bytes) / a.state_bytes
    lines.append(
        f"page: {a.block_size} x {a.attention_bytes} = {a.page_size_bytes} B; the state is padded by "
        f"{a.page_size_bytes - a.state_bytes} B ({pad:.2%})"
    )
    return lines


def _pool_lines(draft: Draft) -> list[str]:
    need, blocks = draft.demand, draft.num_gpu_blocks
    groups = f"{need.attention_groups} attention + {need.recurrent_groups} recurrent groups of {need.group_size} layers"
    request = (
        f"{need.attention_groups} x {need.attention_blocks} + {need.recurrent_groups} x {need.recurrent_blocks}"
        f" = {need.blocks} blocks"
    )
    usable = max(0, blocks - 1)
    length = draft.fitted_max_model_len
    lines = [
        f"pool block: {groups}, {need.group_size} x {draft.alignment.page_size_bytes} = {need.block_bytes} B",
        f"one request of {length} tokens: {request} ({in_bytes(need.blocks * need.block_bytes)})",
        f"pool: {blocks} blocks ({in_bytes(blocks * need.block_bytes)}), one of them the null block",
        f"requests of {length} tokens at once: {usable} / {need.blocks} = {usable / need.blocks:.2f}",
    ]
    if draft.fit_max_model_len:
        fitted = f"{length} of {draft.max_model_len} tokens" if usable >= need.blocks else "none"
        lines.append(f"longest request that fits: {fitted}")
    if draft.device.type != "cpu":
        lines.append(f"weights of one rank: about {in_bytes(draft.weights.least)}, counted from the shapes")
    return lines
