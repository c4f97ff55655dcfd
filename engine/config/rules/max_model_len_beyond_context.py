"""SF204: positions past the declared context were never trained."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse a length beyond what the checkpoint declares."""
    context = draft.model.max_position_embeddings
    if draft.max_model_len <= context:
        return None
    return f"max_model_len={draft.max_model_len} is beyond the context of {context} tokens that config.json declares"


RULE = Rule(
    code="SF204",
    name="max-model-len-beyond-context",
    summary="`max_model_len` must not exceed the context that `config.json` declares.",
    why=(
        "Rotary tables end there, and a checkpoint says nothing about positions beyond. vLLM refuses, too, unless an "
        "environment variable overrides it."
    ),
    fix="Lower `max_model_len`, or leave it out.",
    since="0.1.0",
    says=(
        "max_model_len={} is beyond the context of {} tokens",
        "User-specified max_model_len ({}) is greater than the derived max_model_len (",
    ),
    fields=("model.max_model_len",),
    example=Example("llama", {"max_model_len": 4096}, fix={"max_model_len": None}),
    check=check,
)
