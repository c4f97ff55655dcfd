"""SF406: a name that the release does not know as a value."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Broken, Example, Rule


def _lacking(draft: Draft) -> Iterable[tuple[str, str]]:
    for name, values in draft.release.lacks.items():
        value = getattr(draft.typed, name)
        if value in values:
            yield name, value


def check(draft: Draft) -> list[Broken]:
    """Refuse every such value."""
    return [
        Broken(name, f"{name}={value} is no value that {draft.release.name} knows", (f"{name}={value!r}: typed",))
        for name, value in _lacking(draft)
    ]


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Drop one of them."""
    for name, _ in _lacking(draft):
        yield {name: None}


RULE = Rule(
    code="SF406",
    name="value-not-in-release",
    summary="A dtype must be one that the engine's release knows.",
    why=(
        "The reference engine computes in float64 where results are compared exactly, and keeps keys and values in "
        "the model's dtype; vLLM has neither float64 nor a float32 cache."
    ),
    fix="Choose a narrower dtype, or leave it out.",
    since="0.1.0",
    says=("{}={} is no value that {} knows",),
    fields=("model.dtype",),
    example=Example("jamba", {"dtype": "float64"}, fix={"dtype": None}, device="ampere", release="vllm==0.33.0"),
    check=check,
    proposals=proposals,
    holds=lambda release: bool(release.lacks),
)
