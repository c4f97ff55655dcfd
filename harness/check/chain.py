"""How the values of a refusal came to be: typed at the site, given by a wrapper, the engine's default or its choice."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from staticfire.harness.check.cases import Variant
from staticfire.harness.check.question import Desk
from staticfire.harness.check.values import FIELDS, equal
from staticfire.harness.probe.base import Rejected, Seen
from staticfire.harness.scan.base import Typed

MODEL: Final = "config.json."
OWN: Final = ": typed"
"""How the reference engine ends a sentence about a value that was typed."""
APART: Final = frozenset({"speculative"})
"""Sections whose fields have the names of keywords that set something else: a draft has its own `quantization`."""


def told(variant: Variant, desk: Desk) -> tuple[str, ...]:
    """One sentence for each value.

    Args:
        variant: What was refused.
        desk: Who was asked; an engine that explains its own values does so.
    """
    question = variant.question
    if question is None:
        return ()
    answer = desk.one(question)
    if isinstance(answer, Rejected) and answer.values:
        return tuple(dict.fromkeys(_sentences(answer, variant)))
    return tuple(_placed(link, variant) for link in desk.engine.chain(question))


def _placed(link: str, variant: Variant) -> str:
    """An engine's own sentence about what is typed, with the place, which no engine knows."""
    typed = variant.typed.get(link.partition("=")[0]) if link.endswith(OWN) else None
    return link if typed is None else f"{link.removesuffix(OWN)}: {_by(typed)}"


def _sentences(answer: Rejected, variant: Variant) -> Iterator[str]:
    for seen in answer.values:
        yield f"{seen.field} = {seen.value!r} ({_source(seen, variant)})"


def _source(seen: Seen, variant: Variant) -> str:
    if seen.field.startswith(MODEL):
        return "in the model's configuration"
    typed = _typed(seen.field, variant)
    if typed is not None:
        where = _by(typed)
        return where if _same(typed.value, seen.value) else f"{where} as {typed.value!r}; the engine made it this"
    return "not typed; the default" if seen.default else "not typed; the engine chose it"


def _by(typed: Typed) -> str:
    by = "typed" if typed.layer == "call" else "typed by a wrapper's default"
    return f"{by} at {typed.where.path}:{typed.where.line}"


def _typed(field: str, variant: Variant) -> Typed | None:
    """What sets a field, if it is typed: a keyword, or an entry of its section's configuration."""
    section, _, name = field.rpartition(".")
    inner = _inside(section, name, variant)
    if inner is not None or section in APART:
        return inner
    by_name = [keyword for keyword, fields in FIELDS.items() if field in fields]
    for keyword in (*by_name, name, field):
        typed = variant.typed.get(keyword)
        if typed is not None and typed.value is not None:
            return typed
    return None


def _inside(section: str, name: str, variant: Variant) -> Typed | None:
    """An entry of a section's own configuration: `speculative_config={"method": ...}`, or `x_config.name`."""
    found = []
    for keyword, typed in variant.typed.items():
        outer, _, entry = keyword.partition(".")
        if section and outer != f"{section}_config":
            continue
        if entry == name:
            found.append(typed)
        elif not entry and outer.endswith("_config") and isinstance(typed.value, Mapping) and name in typed.value:
            found.append(Typed(typed.value[name], typed.where, typed.layer))
    known = [typed for typed in found if typed.value is not None]
    return known[0] if len(known) == 1 else None


def _same(typed: Any, value: Any) -> bool:
    return equal(typed, value) or str(typed) == str(value)
