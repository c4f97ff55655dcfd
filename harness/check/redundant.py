"""Typed values that change nothing: without them the engine resolves the same configuration."""

from collections.abc import Iterable, Iterator, Sequence

from staticfire.harness.check.base import Change, Repair
from staticfire.harness.check.cases import Case, Variant
from staticfire.harness.check.judge import Judged, doubts
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.question import Desk, Question
from staticfire.harness.check.repair import apply
from staticfire.harness.check.vocabulary import Vocabulary
from staticfire.harness.probe.base import Accepted, Undecided


def redundant(
    every: Sequence[Judged], desk: Desk, words: Vocabulary, seen: Iterable[Observation] = ()
) -> Iterator[Observation]:
    """Overrides without effect at sites all of whose configurations are known and accepted.

    A keyword is redundant at a site if leaving it out changes neither the resolved nor the run-time values of any of
    the site's cases; a wrapper's default takes its place.

    Args:
        every: Cases and their answers.
        desk: Asks.
        words: What dropping a keyword falls back to.
        seen: What was observed already; a keyword that is spoken of at a site is not spoken of again.
    """
    told = {(_where(one.case), one.keyword) for one in seen if one.keyword}
    sites: dict[tuple[object, ...], list[Judged]] = {}
    for judged in every:
        sites.setdefault(_where(judged.case), []).append(judged)
    plans = [
        (known, keyword)
        for where, known in sites.items()
        if _plain(known, desk)
        for keyword in _keywords(known)
        if (where, keyword) not in told
    ]
    desk.ask([question for known, keyword in plans for question in _without(known, keyword, words)])
    for known, keyword in plans:
        questions = _without(known, keyword, words)
        if [_end(desk.one(question)) for question in questions] == [_end(answer) for answer in _answers(known)]:
            for judged in known:
                variant = judged.case.variants[0]
                message = f"{keyword}={variant.typed[keyword].value!r} changes nothing here"
                repair = ((Change(keyword, drop=True),),)
                yield Observation("redundant", judged.case, variant, message, repairs=repair, keyword=keyword)


def _where(case: Case) -> tuple[object, ...]:
    where = case.site.where
    return (where.path, where.line, where.column)


def without(
    keyword: str, variant: Variant, answer: Accepted | Undecided, judged: Judged, desk: Desk, words: Vocabulary
) -> tuple[Repair, ...]:
    """Dropping a keyword, where that is typed at the site and leaves the configuration as it is."""
    if variant.question is None or variant.typed[keyword].layer != "call":
        return ()
    drop = (Change(keyword, drop=True),)
    arguments = apply(drop, variant, judged.case.site.form, words)
    same = _end(desk.one(variant.question.replaced(arguments))) == _end(answer)
    return (drop,) if same else ()


def _plain(known: Sequence[Judged], desk: Desk) -> bool:
    return all(
        not judged.case.skipped
        and judged.case.negative is None
        and not doubts(judged, desk)
        and all(isinstance(answer, Accepted) and answer.resolved for answer in judged.answers)
        for judged in known
    )


def _keywords(known: Sequence[Judged]) -> list[str]:
    """Keywords typed at the site in every one of its cases."""
    each = [
        {name for name, typed in variant.typed.items() if typed.layer == "call"}
        for judged in known
        for variant in judged.case.variants
    ]
    return sorted(set.intersection(*each)) if each else []


def _without(known: Sequence[Judged], keyword: str, words: Vocabulary) -> list[Question]:
    change = Change(keyword, drop=True)
    return [
        variant.question.replaced(apply((change,), variant, judged.case.site.form, words))
        for judged in known
        for variant in judged.case.variants
        if variant.question is not None
    ]


def _answers(known: Sequence[Judged]) -> list[object]:
    return [answer for judged in known for answer in judged.answers]


def _end(answer: object) -> object:
    """What a configuration comes to; equal to nothing else where the front end does not accept it."""
    if isinstance(answer, Accepted):
        return (dict(answer.resolved), dict(answer.runtime))
    return (dict(answer.resolved), answer.worker) if isinstance(answer, Undecided) else object()
