"""SF405: a release drops architectures that earlier ones had."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse an architecture that the release no longer has."""
    last = draft.release.removed.get(draft.model.architecture)
    if last is None:
        return None
    return f"{draft.model.architecture} is not in {draft.release.name}; the last vLLM that has it is {last}"


RULE = Rule(
    code="SF405",
    name="architecture-not-in-release",
    summary="The engine's release must still have the model's architecture.",
    why=(
        "vLLM takes architectures out of its registry, and says of those which version was the last to run them. The "
        "reference engine keeps the families it has."
    ),
    fix="Use the last release that has it, or another model.",
    since="0.1.0",
    says=("is not in {}; the last vLLM that has it is", "was supported in vLLM until {}, and is not supported anymore"),
    fields=("model.architecture",),
    example=Example("bamba", {}, fix=None, release="vllm==0.28.0"),
    check=check,
    holds=lambda release: bool(release.removed),
)
