"""The smallest verified repair of a refused configuration.

A repair is a set of changes that the engine itself accepted. One change is tried before two. Among repairs of the same
size the order is, best first:

1. a keyword that only a wrapper's default sets is typed at the site: nothing that the author wrote is lost;
2. a keyword that nobody types is typed: what the author wrote stays;
3. a typed flag is flipped or a typed number changed: to one that the message names, then to those used elsewhere in
   the scan, the nearest first; what only a wrapper sets is also tried as `None`;
4. a typed keyword is dropped;
5. a text is set that is used elsewhere in the scan: another quantization or backend is another test.

Within a step, keywords that the engine's message speaks of come first, then the order of the alphabet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from staticfire.harness.check.base import Change, Repair
from staticfire.harness.check.cases import Variant
from staticfire.harness.check.messages import mentions, normalise, numbers
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.question import Desk, Question
from staticfire.harness.check.vocabulary import Vocabulary
from staticfire.harness.probe.base import Accepted, Rejected

MAX_UNTYPED: Final = 40
"""Changes tried for one cause that type a keyword which the engine's message does not speak of."""
FLAGS: Final = frozenset({"enable_prefix_caching", "enable_chunked_prefill", "enforce_eager", "async_scheduling"})
"""Flags on which much depends; they are tried although nobody types them in the scan."""
MAX_PAIRS: Final = 120
MAX_STEPS: Final = 6
MAX_REPAIRS: Final = 6
MAX_NEAR: Final = 2
"""Values used elsewhere that are tried for a keyword which the message does not speak of."""
MAX_QUESTIONS: Final = 6000
"""Questions that one check spends on searching repairs."""


@dataclass(frozen=True, slots=True)
class _Proposal:
    """A change and its rank; smaller is better."""

    change: Change
    rank: tuple[int, int, str, int]


def rank(repair: Repair, variant: Variant) -> tuple[int, int]:
    """How much a repair takes from the author: its number of changes, then the worst of its steps."""
    return (len(repair), sum(_step(change, variant) for change in repair))


def _step(change: Change, variant: Variant) -> int:
    typed = variant.typed.get(change.keyword)
    if change.drop:
        return 3
    if isinstance(change.value, str):
        return 4
    if typed is None:
        return 1
    return 0 if typed.layer == "wrapper" else 2


def apply(repair: Repair, variant: Variant, form: str, words: Vocabulary) -> dict[str, Any]:
    """Keywords after a repair; a dropped one falls back to the default of the site's wrapper."""
    arguments = {name: typed.value for name, typed in variant.typed.items()}
    for change in repair:
        if not change.drop:
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
        proposals = self._proposals(one)
        if self._left <= 0:
            return []
        if not thorough:
            proposals = [proposal for proposal in proposals if proposal.rank[0] != 1 or not proposal.rank[1]]
        self._left -= len(proposals)
        if found := self._verified([(proposal.change,) for proposal in proposals], one):
            return found
        if not thorough:
            return []
        pairs = list(dict.fromkeys([*self._next_steps(one, proposals), *_pairs(proposals)]))[:MAX_PAIRS]
        self._left -= len(pairs)
        return self._verified(pairs, one)

    def _next_steps(self, one: Observation, proposals: Sequence[_Proposal]) -> Iterator[Repair]:
        """Changes after which something else is refused, each with every change that this then calls for."""
        before = one.variant.question
        assert before is not None
        steps = 0
        for proposal in proposals:
            first = proposal.change
            answer = self._desk.one(before.replaced(apply((first,), one.variant, one.case.site.form, self._words)))
            if not isinstance(answer, Rejected) or normalise(answer.message) == normalise(one.message):
                continue
            if steps >= MAX_STEPS:
                return
            steps += 1
            then = replace(one, message=answer.message, field=answer.kind == "field")
            for other in self._proposals(then):
                if other.change.keyword != first.keyword:
                    yield _in_order(first, other.change)

    def _verified(self, repairs: Sequence[Repair], one: Observation) -> list[Repair]:
        before = one.variant.question
        assert before is not None
        questions: list[Question] = []
        tried: list[Repair] = []
        for repair in repairs:
            if any(change.drop and change.keyword not in one.variant.typed for change in repair):
                continue
            question = before.replaced(apply(repair, one.variant, one.case.site.form, self._words))
            if question.key != before.key:
                questions.append(question)
                tried.append(repair)
        answers = self._desk.ask(questions)
        return [repair for repair, answer in zip(tried, answers, strict=True) if isinstance(answer, Accepted)]

    def _smallest(self, repairs: list[Repair]) -> list[Repair]:
        least = min(map(len, repairs), default=0)
        return [repair for repair in repairs if len(repair) == least]

    def _ordered(self, repairs: Sequence[Repair], one: Observation) -> tuple[Repair, ...]:
        """Smallest only, best first, one of those that come to the same configuration."""
        order = {proposal.change.key: index for index, proposal in enumerate(self._proposals(one))}
        last = len(order)

        def place(repair: Repair) -> tuple[Any, ...]:
            known = tuple(order.get(change.key, last) for change in repair)
            return (rank(repair, one.variant), known, [change.key for change in repair])

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

    def _proposals(self, one: Observation) -> list[_Proposal]:
        """Single changes, best first."""
        found: dict[tuple[str, bool, str], _Proposal] = {}
        for keyword in self._keywords(one):
            unmentioned = int(not mentions(one.message, keyword))
            if unmentioned and one.field:
                continue  # one keyword is at fault, and it is named
            for index, change in enumerate(self._changes(keyword, one, near=MAX_NEAR if unmentioned else None)):
                place = (_step(change, one.variant), unmentioned, keyword, index)
                found.setdefault(change.key, _Proposal(change, place))
        ordered = sorted(found.values(), key=lambda proposal: proposal.rank)
        untyped = [proposal for proposal in ordered if proposal.rank[0] == 1 and proposal.rank[1]]
        left_out = {proposal.change.key for proposal in untyped[MAX_UNTYPED:]}
        return [proposal for proposal in ordered if proposal.change.key not in left_out]

    def _keywords(self, one: Observation) -> list[str]:
        spoken = [name for name in self._words.values if mentions(one.message, name)]
        by_hand = one.case.site.form == "VllmConfig"  # its keywords read `section.field`
        untyped = {name for name in (*self._words.flags(), *spoken, *FLAGS) if ("." in name) == by_hand}
        return sorted({*one.variant.typed, *untyped})

    def _changes(self, keyword: str, one: Observation, near: int | None) -> Iterator[Change]:
        typed = one.variant.typed.get(keyword)
        current = typed.value if typed else None
        seen = self._words.values.get(keyword, ())
        if isinstance(current, bool):
            yield Change(keyword, not current)
        elif typed is None and (keyword in FLAGS or any(isinstance(value, bool) for value in seen)):
            yield Change(keyword, value=False)
            yield Change(keyword, value=True)
        if any(isinstance(value, int) and not isinstance(value, bool) for value in (current, *seen)):
            yield from (Change(keyword, number) for number in numbers(one.message)[:4] if number != current)
        # Where no wrapper gives a default, leaving the keyword out says the same as None, and better.
        if typed is not None and current is not None and (one.case.site.form, keyword) in self._words.defaults:
            yield Change(keyword, None)
        if typed is None or not isinstance(current, bool):
            others = [value for value in _near(seen, current) if not isinstance(value, bool)]
            texts = near is None  # another text is another test: only where the message speaks of it
            yield from (Change(keyword, value) for value in others[:near] if texts or not isinstance(value, str))
        if typed is not None and typed.layer == "call":
            yield Change(keyword, drop=True)


def _near(values: Sequence[Any], current: Any) -> list[Any]:
    """Values other than the current one; numbers nearest to it first."""
    others = [value for value in values if value != current or type(value) is not type(current)]
    if isinstance(current, int | float) and not isinstance(current, bool):
        numeric = [value for value in others if isinstance(value, int | float) and not isinstance(value, bool)]
        rest = [value for value in others if value not in numeric]
        return sorted(numeric, key=lambda value: (abs(value - current), value)) + rest
    return others


def _pairs(proposals: Sequence[_Proposal]) -> list[Repair]:
    """Two changes of what is typed, or of what the message speaks of, best first."""
    telling = [proposal for proposal in proposals if proposal.rank[0] != 1 or not proposal.rank[1]]
    ranked = sorted(combinations(telling, 2), key=lambda pair: _pair_rank(*pair))
    return [_in_order(a.change, b.change) for a, b in ranked if a.change.keyword != b.change.keyword]


def _in_order(*changes: Change) -> Repair:
    return tuple(sorted(changes, key=lambda change: change.key))


def _pair_rank(a: _Proposal, b: _Proposal) -> tuple[int, int, tuple[Any, ...]]:
    return (a.rank[1] + b.rank[1], a.rank[0] + b.rank[0], (a.rank, b.rank))


def choose(found: Mapping[str, tuple[Repair, ...]], variants: Mapping[str, Variant]) -> dict[str, Repair | None]:
    """One repair for each question, as few different ones as can be.

    A repair that mends more questions wins, as long as it takes from the author no more than one step beyond what is
    best for each question alone; then the one that takes least.

    Args:
        found: Subject -> its repairs, best first.
        variants: Subject -> its variant.
    """
    chosen: dict[str, Repair | None] = {key: None for key, repairs in found.items() if not repairs}
    open_ = {key: _tolerable(repairs, variants[key]) for key, repairs in found.items() if repairs}
    while open_:
        votes: dict[Repair, list[str]] = {}
        for key, repairs in open_.items():
            for repair in repairs:
                votes.setdefault(repair, []).append(key)

        def score(repair: Repair, votes: Mapping[Repair, Sequence[str]] = votes) -> tuple[Any, ...]:
            keys = votes[repair]
            loss = sum(rank(repair, variants[key])[1] for key in keys)
            places = sum(found[key].index(repair) for key in keys)
            return (-len(keys), loss, places, [change.key for change in repair])

        best = min(votes, key=score)
        for key in votes[best]:
            chosen[key] = best
            del open_[key]
    return chosen


def _tolerable(repairs: Sequence[Repair], variant: Variant) -> list[Repair]:
    best = rank(repairs[0], variant)
    return [repair for repair in repairs if rank(repair, variant)[1] <= best[1] + 1]
