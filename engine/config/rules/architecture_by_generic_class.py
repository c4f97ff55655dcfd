"""SF508: a generic class runs the model, and what it makes of it is not computed here."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse to foretell what the engine's generic class does."""
    architecture = draft.model.architecture
    if architecture not in draft.release.generic:
        return None
    return f"{draft.release.name} has no class {architecture} and takes a generic one, which is not imitated here"


RULE = Rule(
    code="SF508",
    name="architecture-by-generic-class",
    summary="A release that has no class of its own for the architecture is not imitated for it.",
    why=(
        "vLLM then lets the Transformers library define the layers. It knows of no recurrent state in them, so "
        "neither cache mode nor block alignment nor pool follow the rules that hold for its own hybrid classes."
    ),
    fix="Judge for a release that has the architecture, or for the reference engine.",
    since="0.1.0",
    says=("has no class {} and takes a generic one, which is not imitated here",),
    fields=("model.architecture",),
    example=Example("bamba", {}, fix=None, release="vllm==0.33.0"),
    check=check,
    breaks_runtime=True,
    limit=True,
    silences=True,
    holds=lambda release: bool(release.generic),
)
