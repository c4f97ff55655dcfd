"""The smallest verified repair of a refused configuration.

A repair is a set of changes that the engine itself accepted. One change is tried before two; which ones, and in which
order, is said in `propose`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from staticfire.harness.check.base import Repair
from staticfire.harness.check.cases import Variant
from staticfire.harness.check.messages import normalise
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.propose import Proposal, pairs, proposals, rank, together
from staticfire.harness.check.question import ONLY_CONFIGURATION, Answer, Desk, Question
from staticfire.harness.check.vocabulary import Vocabulary
from staticfire.harness.probe.base import Accepted, Rejected, Settled, Undecided

MAX_PAIRS: Final = 120
MAX_STEPS: Final = 6
MAX_REPAIRS: Final = 6
MAX_QUESTIONS: Final = 6000
"""Questions that one check spends on searching repairs."""


def apply(repair: Repair, variant: Variant, form: str, words: Vocabulary) -> dict[str, Any]:
    """Keywords after a repair; a dropped one falls back to the default of the site's wrapper."""
    arguments = {name: typed.value for name, typed in variant.typed.items()}
    for change in repair:
        if change.old:
            arguments[change.keyword] = arguments.pop(change.old)
        elif not change.drop:
            arguments[change.keyword] = change.value
        elif (form, change.keyword) in words.defaults:
            arguments[change.keyword] = words.defaults[form, change.keyword]
        else:
            arguments.pop(change.keyword, None)
    return arguments


class Repairs:
    """Searches repairs, and shares what it learns between cases of the same cause."""

    def __init__(self, desk: Desk, words: Vocabulary) -> None:
        """Verify with `desk`, propose from `words`."""
        self._desk = desk
        self._words = words
        self._left = MAX_QUESTIONS
        self._tried: dict[str, str] = {}

    def tried(self, one: Observation) -> str:
        """What a search without result has tried, and what it has not; empty before a search."""
        return self._tried.get(one.subject, "")

    def of_cause(self, observations: Sequence[Observation]) -> dict[str, tuple[Repair, ...]]:
        """Repairs of every case of one cause.

        What mends one case is tried on the next before anything else, so that a thousand sites with one cause cost
        one search, and share one repair wherever it mends them.

        Args:
            observations: Of one cause.

        Returns:
            `Observation.subject` -> its smallest verified repairs, best first.
        """
        found: dict[str, tuple[Repair, ...]] = {}
        known: dict[Repair, None] = {}
        # What is only possible costs no more questions than there are keywords that it can be about.
        thorough = any(not one.why for one in observations)
        subjects = {one.subject: one for one in observations if one.variant.question is not None}
        for key in sorted(subjects):
            one = subjects[key]
            shared = self._verified(list(known), one)
            if not shared or min(map(len, shared)) > 1:
                shared = self._smallest([*shared, *self.search(one, thorough=thorough)])
            known |= dict.fromkeys(shared)
            found[key] = self._ordered(shared, one)
        # What later cases taught may mend the earlier ones as well.
        for key in sorted(subjects):
            one = subjects[key]
            size = len(found[key][0]) if found[key] else None
            more = [repair for repair in known if size is None or len(repair) <= size]
            found[key] = self._ordered([*found[key], *self._verified(more, one)], one)
        return found

    def search(self, one: Observation, *, thorough: bool = True) -> list[Repair]:
        """Every smallest repair among the changes that are tried.

        Args:
            one: What is to be repaired.
            thorough: False to try single changes of typed keywords and of those that the message speaks of, only.
        """
        if self._left <= 0:
            self._tried[one.subject] = (
                f"none was searched for: this check has spent the {MAX_QUESTIONS:,} questions that it has for repairs"
            )
            return []
        found = proposals(one, self._words)
        if not thorough:
            found = [proposal for proposal in found if proposal.telling]
        self._left -= len(found)
        if mending := self._verified([(proposal.change,) for proposal in found], one):
            return mending
        if not thorough:
            self._tried[one.subject] = (
                f"{_counted(len(found), 'single change')} tried, and no pairs, for it is possible only"
            )
            return []
        every = list(dict.fromkeys([*self._next_steps(one, found), *pairs(found)]))
        chosen = every[:MAX_PAIRS]
        self._left -= len(chosen)
        more = f" of {len(every):,}" if len(chosen) < len(every) else ""
        self._tried[one.subject] = (
            f"{_counted(len(found), 'single change')} and {len(chosen)}{more} pairs tried"
            f"{', the most promising first' if more else ''}"
        )
        return self._verified(chosen, one)

    def _next_steps(self, one: Observation, found: Sequence[Proposal]) -> Iterator[Repair]:
        """Changes after which something else is refused, each with every change that this then calls for."""
        before = one.variant.question
        assert before is not None
        steps = 0
        for proposal in found:
            first = proposal.change
            answer = self._desk.one(before.replaced(apply((first,), one.variant, one.case.site.form, self._words)))
            if not isinstance(answer, Rejected) or normalise(answer.message) == normalise(one.message):
                continue
            if steps >= MAX_STEPS:
                return
            steps += 1
            then = replace(one, message=answer.message, field=answer.kind == "field")
            for other in proposals(then, self._words):
                if other.change.about.isdisjoint(first.about):
                    yield together(first, other.change)

    def _verified(self, repairs: Sequence[Repair], one: Observation) -> list[Repair]:
        before = one.variant.question
        assert before is not None
        questions: list[Question] = []
        tried: list[Repair] = []
        for repair in repairs:
            gone = (change.old or (change.keyword if change.drop else "") for change in repair)
            if any(keyword and keyword not in one.variant.typed for keyword in gone):
                continue
            question = before.replaced(apply(repair, one.variant, one.case.site.form, self._words))
            if question.key != before.key:
                questions.append(question)
                tried.append(repair)
        answers = self._desk.ask(questions)
        return [repair for repair, answer in zip(tried, answers, strict=True) if _mends(answer, one)]

    def _smallest(self, repairs: list[Repair]) -> list[Repair]:
        least = min(map(len, repairs), default=0)
        return [repair for repair in repairs if len(repair) == least]

    def _ordered(self, repairs: Sequence[Repair], one: Observation) -> tuple[Repair, ...]:
        """Smallest only, best first, one of those that come to the same configuration."""
        order = {proposal.change.key: index for index, proposal in enumerate(proposals(one, self._words))}
        last = len(order)

        def place(repair: Repair) -> tuple[Any, ...]:
            known = tuple(order.get(change.key, last) for change in repair)
            return (rank(repair, one), known, [change.key for change in repair])

        kept: list[Repair] = []
        ends: list[object] = []
        for repair in sorted(self._smallest(list(dict.fromkeys(repairs))), key=place):
            end = self._end(repair, one)
            if end not in ends:
                ends.append(end)
                kept.append(repair)
        return tuple(kept[:MAX_REPAIRS])

    def _end(self, repair: Repair, one: Observation) -> object:
        assert one.variant.question is not None
        arguments = apply(repair, one.variant, one.case.site.form, self._words)
        answer = self._desk.one(one.variant.question.replaced(arguments))
        if isinstance(answer, Accepted) and answer.resolved:
            return (dict(answer.resolved), dict(answer.runtime))
        return repair


def _mends(answer: Answer, one: Observation) -> bool:
    """Whether an answer accepts what was refused, in every part that is sure to run and in the one that refused."""
    if isinstance(answer, Undecided):
        return one.phase == "front end" and one.case.site.form in ONLY_CONFIGURATION
    return isinstance(answer, Accepted) and (one.phase != "capacity" or isinstance(answer.capacity, Settled))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def choose(found: Mapping[str, tuple[Repair, ...]], subjects: Mapping[str, Observation]) -> dict[str, Repair | None]:
    """One repair for each question, as few different ones as can be.

    A repair that mends more questions wins, as long as it takes from the author no more than one step beyond what is
    best for each question alone; then the one that takes least.

    Args:
        found: Subject -> its repairs, best first.
        subjects: Subject -> what is observed.
    """
    chosen: dict[str, Repair | None] = {key: None for key, repairs in found.items() if not repairs}
    open_ = {key: _tolerable(repairs, subjects[key]) for key, repairs in found.items() if repairs}
    while open_:
        votes: dict[Repair, list[str]] = {}
        for key, repairs in open_.items():
            for repair in repairs:
                votes.setdefault(repair, []).append(key)

        def score(repair: Repair, votes: Mapping[Repair, Sequence[str]] = votes) -> tuple[Any, ...]:
            keys = votes[repair]
            loss = sum(rank(repair, subjects[key])[1] for key in keys)
            places = sum(found[key].index(repair) for key in keys)
            return (-len(keys), loss, places, [change.key for change in repair])

        best = min(votes, key=score)
        for key in votes[best]:
            chosen[key] = best
            del open_[key]
    return chosen


def _tolerable(repairs: Sequence[Repair], one: Observation) -> list[Repair]:
    best = rank(repairs[0], one)
    return [repair for repair in repairs if rank(repair, one)[1] <= best[1] + 1]
