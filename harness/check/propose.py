"""Single changes that may mend a refused configuration, in the order in which an author would rather make them.

1. A keyword that the engine does not know is typed by the nearest name that it knows, its value kept; one that only a
   wrapper's default sets is typed at the site: nothing that the author wrote is lost;
2. a keyword that nobody types is typed: what the author wrote stays;
3. a typed flag is flipped, a text is read as the number that it means, or a typed number is changed to one that the
   message gives for this keyword; what only a wrapper sets is also tried as `None`;
4. a typed keyword is dropped;
5. a value is set that is used elsewhere in the scan, the nearest number first: another size, quantization or backend
   is another test.

Within a step, keywords that the engine's message speaks of come first, then the order of the alphabet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Final

from staticfire.harness.check.base import Change, Repair
from staticfire.harness.check.cases import Variant
from staticfire.harness.check.frontend import parsed
from staticfire.harness.check.messages import mentions, names, numbers
from staticfire.harness.check.observe import Observation
from staticfire.harness.check.vocabulary import Vocabulary

MAX_UNTYPED: Final = 40
"""Changes tried for one cause that type a keyword which the engine's message does not speak of."""
FLAGS: Final = frozenset({"enable_prefix_caching", "enable_chunked_prefill", "enforce_eager", "async_scheduling"})
"""Flags on which much depends; they are tried although nobody types them in the scan."""
MAX_NEAR: Final = 2
"""Values used elsewhere that are tried for a keyword which the message does not speak of."""
MAX_NUMBERS: Final = 4
MAX_NAMES: Final = 2
NEAR: Final = 0.8
"""How much of two names must be alike for one to be the other, misspelt: of `max_modl_len` it is 0.96."""
TYPE, SET, DROP, ELSEWHERE = 1, 2, 3, 4


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change and its rank; smaller is better.

    Attributes:
        change: The change.
        rank: Step, whether the message does not speak of the keyword, the keyword, and the place among its changes.
    """

    change: Change
    rank: tuple[int, int, str, int]

    @property
    def telling(self) -> bool:
        """Whether it is about what is typed, or what the message speaks of."""
        return self.rank[0] != TYPE or not self.rank[1]


def rank(repair: Repair, one: Observation) -> tuple[int, int]:
    """How much a repair takes from the author: its number of changes, then the sum of their steps."""
    return (len(repair), sum(step(change, one.variant, one.message) for change in repair))


def step(change: Change, variant: Variant, message: str) -> int:
    """How much a single change takes from the author, from 0 on."""
    typed = variant.typed.get(change.keyword)
    if change.old:
        return 0
    if change.drop:
        return DROP
    if isinstance(change.value, str):
        return ELSEWHERE
    if typed is None:
        return TYPE
    if typed.layer == "wrapper":
        return 0
    meant = isinstance(change.value, bool) or change.value in _meant(change.keyword, typed.value, message)
    return SET if meant or change.value is None else ELSEWHERE


def _meant(keyword: str, current: Any, message: str) -> list[int]:
    """Numbers that a typed text or fraction means, then those that the message gives for the keyword."""
    found = [*_read(keyword, current), *numbers(message, keyword)[:MAX_NUMBERS]]
    return [number for number in dict.fromkeys(found) if number != current or type(number) is not type(current)]


def _read(keyword: str, current: Any) -> Iterator[int]:
    if isinstance(current, float) and current.is_integer() and abs(current) < 2**53:
        yield int(current)
    if isinstance(current, str) and len(current) < 16:
        value = int(current) if current.isascii() and current.isdigit() else parsed({keyword: current})[keyword]
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            yield value


def proposals(one: Observation, words: Vocabulary) -> list[Proposal]:
    """Single changes, best first."""
    found: dict[tuple[str, bool, str, str], Proposal] = {}
    for keyword in _keywords(one, words):
        unmentioned = int(not mentions(one.message, keyword))
        if unmentioned and one.field:
            continue  # one keyword is at fault, and it is named
        for index, change in enumerate(_changes(keyword, one, words, near=MAX_NEAR if unmentioned else None)):
            place = (step(change, one.variant, one.message), unmentioned, keyword, index)
            found.setdefault(change.key, Proposal(change, place))
    ordered = sorted(found.values(), key=lambda proposal: proposal.rank)
    untelling = [proposal for proposal in ordered if not proposal.telling]
    left_out = {proposal.change.key for proposal in untelling[MAX_UNTYPED:]}
    return [proposal for proposal in ordered if proposal.change.key not in left_out]


def _keywords(one: Observation, words: Vocabulary) -> list[str]:
    spoken = [name for name in words.values if mentions(one.message, name)]
    by_hand = one.case.site.form == "VllmConfig"  # its keywords read `section.field`
    untyped = {name for name in (*words.flags(), *spoken, *FLAGS) if ("." in name) == by_hand}
    return sorted({*one.variant.typed, *untyped})


def _changes(keyword: str, one: Observation, words: Vocabulary, near: int | None) -> Iterator[Change]:
    typed = one.variant.typed.get(keyword)
    current = typed.value if typed else None
    seen = words.values.get(keyword, ())
    if typed is not None and names(one.message, keyword):
        yield from _renamed(keyword, one, words)
    if isinstance(current, bool):
        yield Change(keyword, not current)
    elif typed is None and (keyword in FLAGS or any(isinstance(value, bool) for value in seen)):
        yield Change(keyword, value=False)
        yield Change(keyword, value=True)
    elif any(isinstance(value, int) and not isinstance(value, bool) for value in (current, *seen)):
        yield from (Change(keyword, number) for number in _meant(keyword, current, one.message))
    else:
        yield from (Change(keyword, number) for number in _read(keyword, current))
    # Where no wrapper gives a default, leaving the keyword out says the same as None, and better.
    if typed is not None and current is not None and (one.case.site.form, keyword) in words.defaults:
        yield Change(keyword, None)
    if typed is not None and typed.layer == "call":
        yield Change(keyword, drop=True)
    if typed is None or not isinstance(current, bool):
        others = [value for value in _near(seen, current) if not isinstance(value, bool)]
        texts = near is None  # another text is another test: only where the message speaks of it
        yield from (Change(keyword, value) for value in others[:near] if texts or not isinstance(value, str))


def _renamed(keyword: str, one: Observation, words: Vocabulary) -> Iterator[Change]:
    """The keyword under the nearest names that the engine knows, if it does not know this one."""
    assert one.variant.question is not None
    known = words.names(one.variant.question)
    if keyword not in known:
        near = get_close_matches(keyword, sorted(known - set(one.variant.typed)), n=MAX_NAMES, cutoff=NEAR)
        yield from (Change(name, old=keyword) for name in near)


def _near(values: Sequence[Any], current: Any) -> list[Any]:
    """Values other than the current one; numbers nearest to it first."""
    others = [value for value in values if value != current or type(value) is not type(current)]
    if isinstance(current, int | float) and not isinstance(current, bool):
        numeric = [value for value in others if isinstance(value, int | float) and not isinstance(value, bool)]
        rest = [value for value in others if value not in numeric]
        return sorted(numeric, key=lambda value: (abs(value - current), value)) + rest
    return others


def pairs(found: Sequence[Proposal]) -> list[Repair]:
    """Two changes of what is typed, or of what the message speaks of, best first."""
    telling = [proposal for proposal in found if proposal.telling]
    ranked = sorted(combinations(telling, 2), key=lambda pair: _pair_rank(*pair))
    return [together(a.change, b.change) for a, b in ranked if a.change.about.isdisjoint(b.change.about)]


def together(*changes: Change) -> Repair:
    """Changes as one repair."""
    return tuple(sorted(changes, key=lambda change: change.key))


def _pair_rank(a: Proposal, b: Proposal) -> tuple[int, int, tuple[Any, ...]]:
    return (a.rank[1] + b.rank[1], a.rank[0] + b.rank[0], (a.rank, b.rank))
