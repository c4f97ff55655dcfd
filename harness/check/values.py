"""Typed values that an accepted configuration does not keep, and why: rewritten, or beaten by another typed value."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from staticfire.harness.check.base import Change, Repair
from staticfire.harness.check.judge import Judged, doubts
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.question import Answer, Desk
from staticfire.harness.check.repair import apply
from staticfire.harness.check.vocabulary import Vocabulary
from staticfire.harness.probe.base import Accepted, Undecided
from staticfire.harness.scan.base import Typed

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "kv_cache_dtype": ("cache.cache_dtype",),
    "max_num_batched_tokens": ("scheduler.max_num_batched_tokens",),
    "max_num_seqs": ("scheduler.max_num_seqs",),
    "enable_chunked_prefill": ("scheduler.enable_chunked_prefill",),
    "block_size": ("cache.block_size",),
    "max_model_len": ("model.max_model_len",),
    "enable_lora": (),
    "mamba_ssm_cache_dtype": ("cache.mamba_ssm_cache_dtype",),
}
"""Keyword -> fields that hold it, where the field has another name or another section has one of the same name."""

SECTIONS: Final = (
    "attention", "cache", "compilation", "device", "kernel", "load", "lora", "mamba", "model", "observability",
    "offload", "parallel", "scheduler", "speculative", "structured_outputs",
)  # fmt: skip
"""Sections in which a keyword's field can be."""

SAME: Final[Mapping[str, str]] = {
    "half": "float16",
    "float": "float32",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp8": "fp8_e4m3",
}
"""Values that are only other spellings."""

COMPARED: Final = frozenset({"dtype", "quantization", "mamba_cache_mode", "kv_cache_dtype", "mamba_cache_dtype"})
"""Keywords whose text values are compared; other texts are names and paths that an engine resolves by design."""

MAX_RIVALS: Final = 12


def kept(keyword: str, typed: Any, answer: Accepted | Undecided) -> tuple[bool, Any, str]:
    """Whether a typed value is the one in force.

    Args:
        keyword: The keyword.
        typed: The value.
        answer: The engine's answer.

    Returns:
        Whether it is kept (or cannot be compared), the value in force, and who changed it: `front end` or `worker`.
    """
    if not comparable(keyword, typed):
        return True, typed, ""
    runtime = answer.runtime if isinstance(answer, Accepted) else {}
    for table, who in ((answer.resolved, "front end"), (runtime, "worker")):
        found, value = lookup(keyword, table)
        if found and comparable(keyword, value) and not equal(typed, value):
            return False, value, who
    return True, typed, ""


def comparable(keyword: str, value: Any) -> bool:
    """Whether a typed value promises to be kept: a flag, a number from zero on, or a text of a known choice."""
    if isinstance(value, bool):
        return True
    if isinstance(value, int | float):
        return 0 <= value < math.inf  # nan is no promise, either
    return isinstance(value, str) and keyword in COMPARED and value != "auto"


def lookup(keyword: str, table: Mapping[str, Any]) -> tuple[bool, Any]:
    """The value of a keyword among `section.field` or bare names; not found where two sections disagree."""
    fields = (keyword, *FIELDS[keyword]) if keyword in FIELDS else _fields(keyword)
    values = [table[name] for name in fields if name in table]
    if not values or any(not equal(value, values[0]) for value in values[1:]):
        return False, None
    return True, values[0]


@cache
def _fields(keyword: str) -> tuple[str, ...]:
    return (keyword, *(f"{section}.{keyword}" for section in SECTIONS))


def equal(typed: Any, value: Any) -> bool:
    """Whether two values are the same but for spelling."""
    if isinstance(typed, bool) or isinstance(value, bool):
        return bool(typed) == bool(value) if isinstance(value, bool | int) and isinstance(typed, bool | int) else False
    if isinstance(typed, int | float) and isinstance(value, int | float):
        return typed == value
    if isinstance(typed, str) and isinstance(value, str):
        one, other = (text.lower().removeprefix("torch.").replace("-", "_") for text in (typed, value))
        return SAME.get(one, one) == SAME.get(other, other)
    return bool(typed == value)


def replaced(judged: Judged, desk: Desk, words: Vocabulary, *, every_layer: bool = False) -> Iterator[Observation]:
    """Typed values of a case that are not in force though the engine accepts.

    Args:
        judged: The case and its answers.
        desk: Asks which other typed value is to blame.
        words: What dropping a keyword falls back to.
        every_layer: Also report values that only a wrapper's default sets.
    """
    if judged.case.negative is not None:
        return
    first = next(
        ((v, a) for v, a in judged.pairs if isinstance(a, Accepted | Undecided) and v.question is not None), None
    )
    if first is None:
        return
    variant, answer = first
    for keyword, typed in sorted(variant.typed.items()):
        if typed.layer != "call" and not every_layer:
            continue
        same, value, who = kept(keyword, typed.value, answer)
        if not same:
            why = (*doubts(judged, desk), *_open(judged, keyword, typed, value))
            seen = Observation("rewritten", judged.case, variant, "", why=tuple(dict.fromkeys(why)), keyword=keyword)
            rival = _rival(desk, seen)
            repairs = (*_conceding(desk, seen, words, value), *_giving_way(desk, seen, words, rival))
            yield _told(seen, value, who, repairs, rival)


def _open(judged: Judged, keyword: str, typed: Typed, value: Any) -> Iterator[str]:
    for variant, answer in judged.pairs:
        if not isinstance(answer, Accepted | Undecided):
            yield "other values that it can have are not accepted, or could not be judged"
            return
        other = variant.typed.get(keyword)
        if other is None or not equal(other.value, typed.value):
            continue
        if kept(keyword, other.value, answer)[:2] != (False, value):
            yield "it depends on a value or a condition that is not known"
            return


def _told(seen: Observation, value: Any, who: str, repairs: tuple[Repair, ...], rival: str | None) -> Observation:
    """The observation in words; a rival makes it a contradiction, which dropping either value ends."""
    typed = seen.variant.typed
    user = "the worker" if who == "worker" else "the engine"
    message = f"you typed {seen.keyword}={typed[seen.keyword].value!r}, {user} uses {value!r}"
    if rival is None:
        return replace(seen, message=message, phase=who, repairs=repairs)
    message += f", because of {rival}={typed[rival].value!r}"
    return replace(seen, kind="contradiction", message=message, phase=who, repairs=repairs)


def _rival(desk: Desk, seen: Observation) -> str | None:
    """Another typed keyword without which the value would be in force."""
    variant = seen.variant
    assert variant.question is not None
    others = [name for name in sorted(variant.typed) if name != seen.keyword and variant.typed[name].value is not None]
    questions = []
    for name in others[:MAX_RIVALS]:
        arguments = {one: other.value for one, other in variant.typed.items() if one != name}
        questions.append(variant.question.replaced(arguments))
    answers = desk.ask(questions)
    return next((name for name, answer in zip(others, answers, strict=False) if _in_force(seen, answer)), None)


def _in_force(seen: Observation, answer: Answer) -> bool:
    """Whether an answer keeps the value that is typed, and says so."""
    if not isinstance(answer, Accepted | Undecided):
        return False
    typed = seen.variant.typed[seen.keyword].value
    return kept(seen.keyword, typed, answer)[0] and lookup(seen.keyword, answer.resolved)[0]


def _conceding(desk: Desk, seen: Observation, words: Vocabulary, value: Any) -> tuple[Repair, ...]:
    """Dropping what is typed, or typing what is used instead: the worker's values stay, and nobody is misled."""
    variant, keyword = seen.variant, seen.keyword
    if variant.question is None or variant.typed[keyword].layer != "call":
        return ()
    before = desk.one(variant.question)
    made = []
    for change in (Change(keyword, drop=True), Change(keyword, value)):
        question = variant.question.replaced(apply((change,), variant, seen.case.site.form, words))
        answer = desk.one(question)
        if not isinstance(answer, Accepted) or not isinstance(before, Accepted):
            continue
        if _uses(answer, keyword, value) and dict(answer.runtime) == dict(before.runtime):
            made.append((change,))
    return tuple(made)


def _uses(answer: Accepted, keyword: str, value: Any) -> bool:
    """Whether a value is in force in the end: the worker's where there is one, else the front end's."""
    for table in (answer.runtime, answer.resolved):
        found, used = lookup(keyword, table)
        if found:
            return equal(value, used)
    return False


def _giving_way(desk: Desk, seen: Observation, words: Vocabulary, rival: str | None) -> tuple[Repair, ...]:
    """Dropping the value that wins, where that is typed at the site and brings the other one into force."""
    variant = seen.variant
    assert variant.question is not None
    if rival is None or variant.typed[rival].layer != "call":
        return ()
    drop = (Change(rival, drop=True),)
    question = variant.question.replaced(apply(drop, variant, seen.case.site.form, words))
    return (drop,) if _in_force(seen, desk.one(question)) else ()
