"""SF505: the reference engine reads safetensors, never pickle."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse every format but safetensors and dummy."""
    if draft.load_format in {"safetensors", "dummy"}:
        return None
    return f"load_format={draft.load_format} is not supported by the reference engine; it has safetensors and dummy"


RULE = Rule(
    code="SF505",
    name="load-format-not-supported",
    summary="The load format is known, but not supported.",
    why=(
        "Pickled checkpoints can run code when they are read, and the other formats are for special storage. The "
        "reference engine reads safetensors, or draws dummy weights from the seed."
    ),
    fix="Leave `load_format` at `auto`.",
    since="0.1.0",
    says=("load_format={} is not supported by the reference engine", "Load format `{}` is not supported"),
    fields=("load.load_format",),
    example=Example("llama", {"load_format": "pt"}, fix={"load_format": None}),
    check=check,
    limit=True,
)
