"""SF503: a known method that the reference engine does not have."""

from staticfire.engine.config.draft import Draft
from staticfire.engine.config.rules.base import Example, Rule


def check(draft: Draft) -> str | None:
    """Refuse every method but `experts_int8`."""
    if draft.quantization in {None, "experts_int8"}:
        return None
    return f"quantization={draft.quantization} is not supported by the reference engine; it has experts_int8"


RULE = Rule(
    code="SF503",
    name="quantization-not-supported",
    summary="The quantization method is known, but not supported.",
    why="The reference engine quantizes expert weights to 8-bit integers at load, and nothing else yet.",
    fix="Choose `experts_int8`, or drop `quantization`.",
    since="0.1.0",
    says=("quantization={} is not supported by the reference engine", "quantization is currently not supported in"),
    fields=("quantization.method",),
    example=Example("jamba", {"quantization": "fp8"}, fix={"quantization": None}),
    check=check,
    limit=True,
)
