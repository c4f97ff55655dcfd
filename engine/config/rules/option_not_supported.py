"""SF501: a known keyword asks for something the reference engine does not have."""

from collections.abc import Iterable, Mapping
from typing import Any

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.options import KNOWN
from staticfire.engine.config.rules.base import Broken, Example, Rule


def _asked(draft: Draft) -> Iterable[tuple[str, Any]]:
    for name, value in draft.others.items():
        if KNOWN[name].effect == "unsupported" and not KNOWN[name].asks_for_nothing(value):
            yield name, value


def check(draft: Draft) -> list[Broken]:
    """Refuse every such keyword, each with its reason."""
    lacks = "is not supported by the reference engine"
    return [
        Broken(name, f"{name}={value!r} {lacks}: {KNOWN[name].reason}", (f"{name}={value!r}: typed",))
        for name, value in _asked(draft)
    ]


def proposals(draft: Draft) -> Iterable[Mapping[str, Any]]:
    """Drop one of them."""
    for name, _ in _asked(draft):
        yield {name: None}


RULE = Rule(
    code="SF501",
    name="option-not-supported",
    summary="A keyword of vLLM asks for something that the reference engine does not have.",
    why=(
        "The reference engine knows every keyword of the vLLM versions it follows. Those whose value cannot change "
        "what is computed are accepted without effect; those that would are refused instead of ignored."
    ),
    fix="Drop the keyword.",
    since="0.1.0",
    fields=(),
    example=Example("llama", {"enable_lora": True}, fix={"enable_lora": None}),
    check=check,
    limit=True,
    proposals=proposals,
)
