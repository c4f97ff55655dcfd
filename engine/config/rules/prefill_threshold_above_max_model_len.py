"""SF203: no prompt is ever as long as the threshold."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a threshold that no prompt can reach."""
    if draft.long_prefill_token_threshold <= draft.max_model_len:
        return None
    return (
        f"long_prefill_token_threshold={draft.long_prefill_token_threshold} is above "
        f"max_model_len={draft.max_model_len}"
    )


RULE = Rule(
    code="SF203",
    name="prefill-threshold-above-max-model-len",
    summary="`long_prefill_token_threshold` must not exceed `max_model_len`.",
    why=(
        "The threshold caps the tokens one prompt takes in a step. Above the longest prompt it caps nothing, so it "
        "was meant for another length."
    ),
    fix="Lower the threshold, or drop it.",
    since="0.1.0",
    says=(
        "long_prefill_token_threshold={} is above max_model_len={}",
        "long_prefill_token_threshold ({}) cannot be greater than the max_model_len ({})",
    ),
    fields=(
        "scheduler.long_prefill_token_threshold",
        "model.max_model_len",
    ),
    example=Example(
        "llama",
        {"long_prefill_token_threshold": 1024, "max_model_len": 512},
        fix={"long_prefill_token_threshold": 512},
    ),
    check=check,
    proposals=lambda draft: ({"long_prefill_token_threshold": draft.max_model_len},),
)
