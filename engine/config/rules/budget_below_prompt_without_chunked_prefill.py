"""SF201: a prompt that may not be cut must fit into one step."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a token budget below the longest prompt where prompts are not cut."""
    if draft.enable_chunked_prefill or draft.max_num_batched_tokens >= draft.max_model_len:
        return None
    return (
        f"max_num_batched_tokens={draft.max_num_batched_tokens} is below max_model_len={draft.max_model_len}, "
        f"but enable_chunked_prefill=False"
    )


RULE = Rule(
    code="SF201",
    name="budget-below-prompt-without-chunked-prefill",
    summary="Without chunked prefill, `max_num_batched_tokens` must reach `max_model_len`.",
    why="A prompt that may not be cut is prefilled in one step. One longer than the budget would wait for ever.",
    fix="Leave chunked prefill on, raise `max_num_batched_tokens`, or lower `max_model_len`.",
    since="0.1.0",
    says=(
        "max_num_batched_tokens={} is below max_model_len={}, but enable_chunked_prefill=False",
        "max_num_batched_tokens ({}) is smaller than max_model_len ({})",
    ),
    fields=(
        "scheduler.max_num_batched_tokens",
        "model.max_model_len",
        "scheduler.enable_chunked_prefill",
    ),
    example=Example(
        "llama",
        {"enable_chunked_prefill": False, "max_num_batched_tokens": 256, "max_model_len": 512},
        fix={"max_num_batched_tokens": 512},
    ),
    check=check,
    proposals=lambda draft: (
        {"max_num_batched_tokens": draft.max_model_len},
        {"max_model_len": draft.max_num_batched_tokens},
    ),
)
