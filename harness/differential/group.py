"""Disagreements with one cause, as far as their origin tells, each with its smallest example."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from staticfire.harness.differential.base import Case, Disagreement

Ask = Callable[[Sequence[Case]], Sequence[Iterable[Disagreement]]]
"""Gives the disagreements of each case."""


@dataclass(frozen=True, slots=True)
class Group:
    """Disagreements alike.

    Attributes:
        example: The one that is shown, of a configuration from which nothing typed can be dropped.
        members: How many there are, and
        models: on which models, sorted.
    """

    example: Disagreement
    members: int
    models: tuple[str, ...]


def grouped(disagreements: Iterable[Disagreement]) -> dict[tuple[str, str, str], list[Disagreement]]:
    """Sort into groups, those with the most members first."""
    groups: dict[tuple[str, str, str], list[Disagreement]] = {}
    for one in disagreements:
        groups.setdefault(one.group, []).append(one)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])))


def shrunk(groups: Iterable[Sequence[Disagreement]], ask: Ask) -> list[Group]:
    """Drop typed values while the disagreement stays; all groups at once, for asking one by one is slow.

    Args:
        groups: From `grouped`.
        ask: Asks both sides.

    Returns:
        A group for each, in their order.
    """
    members = [list(group) for group in groups]
    smallest = [min(group, key=lambda one: (len(one.case.typed), one.case.key)) for group in members]
    open_ = list(range(len(smallest)))
    while open_:
        fewer = [(index, case) for index in open_ for case in _without_one(smallest[index].case)]
        answers = ask([case for _, case in fewer])
        better: dict[int, Disagreement] = {}
        for (index, _), found in zip(fewer, answers, strict=True):
            same = [one for one in found if one.group == smallest[index].group]
            if same and index not in better:
                better[index] = same[0]
        for index, found_one in better.items():
            smallest[index] = found_one
        open_ = [index for index in better if smallest[index].case.typed]
    return [
        Group(one, len(group), tuple(sorted({member.case.model for member in group})))
        for one, group in zip(smallest, members, strict=True)
    ]


def _without_one(case: Case) -> list[Case]:
    return [
        Case(case.model, {name: value for name, value in case.typed.items() if name != dropped})
        for dropped in case.typed
    ]
