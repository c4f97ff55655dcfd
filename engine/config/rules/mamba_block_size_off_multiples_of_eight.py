"""SF103: state blocks follow the convolution kernel's step."""

from typing import Final

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule

STEP: Final = 8


def check(draft: Draft) -> str | None:
    """Refuse a typed `mamba_block_size` that is no multiple of eight."""
    typed = draft.typed.mamba_block_size
    if typed is None or typed % STEP == 0 or typed == draft.max_model_len:
        return None
    return f"mamba_block_size={typed} is no multiple of {STEP}"


RULE = Rule(
    code="SF103",
    name="mamba-block-size-off-multiples-of-eight",
    summary="`mamba_block_size` must be a multiple of 8.",
    why=(
        "The causal convolution works through tokens eight at a time; a state block that ends between two steps has "
        "no state to cache. vLLM documents this and does not check it."
    ),
    fix="Choose a multiple of 8.",
    since="0.1.0",
    says=("mamba_block_size={} is no multiple of",),
    fields=("cache.mamba_block_size",),
    example=Example("jamba", {"mamba_block_size": 12}, fix={"mamba_block_size": 16}),
    check=check,
    proposals=lambda draft: ({"mamba_block_size": STEP * -(-(draft.typed.mamba_block_size or STEP) // STEP)},),
)
