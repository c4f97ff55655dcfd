"""SF205: a threshold cuts prompts, which chunked prefill alone allows."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a threshold where prompts are not cut."""
    if draft.enable_chunked_prefill or not draft.long_prefill_token_threshold:
        return None
    return (
        f"long_prefill_token_threshold={draft.long_prefill_token_threshold} cuts prompts, "
        f"but enable_chunked_prefill=False"
    )


RULE = Rule(
    code="SF205",
    name="prefill-threshold-without-chunked-prefill",
    summary="`long_prefill_token_threshold` needs chunked prefill.",
    why=(
        "The threshold is a cap on the tokens of one prompt in one step, so it cuts every longer prompt. With chunked "
        "prefill off nothing may be cut."
    ),
    fix="Drop the threshold, or leave chunked prefill on.",
    since="0.1.0",
    says=("long_prefill_token_threshold={} cuts prompts, but enable_chunked_prefill=False",),
    fields=(
        "scheduler.long_prefill_token_threshold",
        "scheduler.enable_chunked_prefill",
    ),
    example=Example(
        "llama",
        {"long_prefill_token_threshold": 64, "enable_chunked_prefill": False},
        fix={"long_prefill_token_threshold": None},
    ),
    check=check,
    holds=lambda release: release.refuses_idle_options,
)
