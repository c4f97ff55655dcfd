"""SF202: every running sequence takes at least one token of a step."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse fewer tokens than sequences."""
    if draft.max_num_batched_tokens >= draft.max_num_seqs:
        return None
    return f"max_num_batched_tokens={draft.max_num_batched_tokens} is below max_num_seqs={draft.max_num_seqs}"


RULE = Rule(
    code="SF202",
    name="budget-below-sequences",
    summary="`max_num_batched_tokens` must be at least `max_num_seqs`.",
    why=(
        "A decoding sequence takes one token of every step. With fewer tokens than sequences some could never run "
        "beside the others, though the configuration says they do."
    ),
    fix="Raise `max_num_batched_tokens` or lower `max_num_seqs`.",
    since="0.1.0",
    says=(
        "max_num_batched_tokens={} is below max_num_seqs={}",
        "max_num_batched_tokens ({}) must be greater than or equal to max_num_seqs ({})",
    ),
    fields=(
        "scheduler.max_num_batched_tokens",
        "scheduler.max_num_seqs",
    ),
    example=Example("llama", {"max_num_batched_tokens": 8, "max_num_seqs": 16}, fix={"max_num_seqs": 8}),
    check=check,
    proposals=lambda draft: (
        {"max_num_batched_tokens": draft.max_num_seqs},
        {"max_num_seqs": draft.max_num_batched_tokens},
    ),
)
