"""SF603: options about recurrent states do nothing on a model that has none."""

from collections.abc import Iterable
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, RewriteRule


def find(draft: Draft) -> Iterable[tuple[str, Any, Any, str]]:
    """Find typed state options on a model without recurrent layers."""
    if draft.model.recurrent_layers:
        return
    for name in ("mamba_cache_mode", "mamba_block_size", "mamba_cache_dtype", "mamba_ssm_cache_dtype"):
        typed = getattr(draft.typed, name)
        if typed is not None and not (name == "mamba_cache_mode" and typed == "none"):
            value = "none" if name == "mamba_cache_mode" else None
            yield f"cache.{name}", typed, value, f"{name}={typed} has no effect: the model has no recurrent layers"


RULE = RewriteRule(
    code="SF603",
    name="state-options-without-recurrent-layers",
    summary="Options about recurrent states have no effect on a model without recurrent layers.",
    why="They describe a state that each recurrent layer keeps; a model without such layers keeps none.",
    fix="Drop them.",
    since="0.1.0",
    fields=(
        "cache.mamba_cache_mode",
        "model.is_hybrid",
    ),
    example=Example("llama", {"mamba_ssm_cache_dtype": "float32"}),
    find=find,
)
