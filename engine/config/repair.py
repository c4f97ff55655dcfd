"""The smallest changes that make a refused configuration accepted, each verified by resolving again.

A breadth-first search over sets of changed keywords. A broken rule proposes: drop or flip what was typed on its chain,
flip a default on it, and what the rule itself knows. Every repair must mend the first broken rule, so only that one
proposes; whatever is still refused afterwards proposes again, and several needed changes become one repair, without
those that a later one made needless. Where that grows too large, typed keywords are dropped and as many as possible are
put back. Nothing is returned that resolution still refuses, or that leaves more open than before.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any, Final

from staticfire.engine.config.device import CPU, Device
from staticfire.engine.config.draft import KEYWORD_OF, Draft
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.config.model import LARGEST, ModelInfo
from staticfire.engine.config.release import REFERENCE, EngineRelease
from staticfire.engine.config.resolution import Fix, Resolution, Violation
from staticfire.engine.config.resolver import judge, settle
from staticfire.engine.config.rules.base import Rule
from staticfire.engine.config.rules.registry import BY_CODE
from staticfire.engine.config.typed import read_typed

MAX_CHANGES: Final = 6
MAX_RESOLUTIONS: Final = 1500
"""Resolutions that one search may take, about 0.15 s."""
MAX_SUBSETS: Final = 10
"""Dropped keywords up to which every subset is tried."""

Changes = tuple[tuple[str, Any], ...]
"""Sorted (keyword, value) pairs; a value of None drops the keyword."""


def repairs(
    typed: Mapping[str, Any],
    model: ModelInfo,
    device: Device = CPU,
    release: EngineRelease = REFERENCE,
    *,
    limit: int = 3,
) -> tuple[Fix, ...]:
    """Find the smallest repairs of a refused configuration.

    Args:
        typed: What the user wrote; without field errors.
        model: The model.
        device: The device.
        release: The engine that it is judged for.
        limit: How many to return at most.

    Returns:
        Verified repairs of equal, smallest size, best first: those that keep what was typed before those that change
        it, then in the order of the rules. Where more than a handful of changes is needed, one repair that only drops
        keywords, of which none can be left out. Empty where nothing refuses it, or where nothing was found.

    Raises:
        ConfigError: `typed` has field errors.
    """
    return _Search(dict(typed), model, device, release).run(limit)


class _Search:
    def __init__(self, typed: dict[str, Any], model: ModelInfo, device: Device, release: EngineRelease) -> None:
        self.typed = {name: value for name, value in typed.items() if value is not None}
        self.model = model
        self.device = device
        self.release = release
        self.resolutions = 0
        self.resolved: dict[Changes, tuple[Draft, Resolution]] = {}
        self.open: frozenset[tuple[str, tuple[str, ...]]] = frozenset()

    def run(self, limit: int) -> tuple[Fix, ...]:
        draft, resolution = self._resolve(())
        if not resolution.violations:
            return ()
        self.open = _limits(resolution)
        frontier: dict[Changes, tuple[Draft, Resolution]] = {(): (draft, resolution)}
        seen: set[Changes] = {()}
        for _ in range(MAX_CHANGES):
            found, frontier = self._grow(frontier, seen)
            if found:
                return tuple(self._fix(changes) for changes in self._best(self._needed(found))[:limit])
        return self._drop_and_restore()

    def _grow(
        self, frontier: Mapping[Changes, tuple[Draft, Resolution]], seen: set[Changes]
    ) -> tuple[dict[Changes, Resolution], dict[Changes, tuple[Draft, Resolution]]]:
        """Try every change set that is one larger."""
        found: dict[Changes, Resolution] = {}
        refused: dict[Changes, tuple[Draft, Resolution]] = {}
        for changes, (draft, resolution) in frontier.items():
            for keyword, value in self._proposals(draft, resolution, dict(changes)):
                larger = tuple(sorted((*changes, (keyword, value)), key=lambda pair: pair[0]))
                if larger in seen or self.resolutions >= MAX_RESOLUTIONS:
                    continue
                seen.add(larger)
                draft_, resolution_ = self._resolve(larger)
                if self._mended(resolution_):
                    found[larger] = resolution_
                else:
                    refused[larger] = (draft_, resolution_)
        return found, refused

    def _drop_and_restore(self) -> tuple[Fix, ...]:
        """Drop what was typed, put back what can stay, and look for the smallest part that is enough."""
        dropped = sorted(self.typed)
        if not self._accepted(dropped):
            return ()
        restored = True
        while restored:
            restored = False
            for name in tuple(dropped):
                rest = [other for other in dropped if other != name]
                if self._accepted(rest):
                    dropped, restored = rest, True
        if len(dropped) <= MAX_SUBSETS:
            parts = (part for size in range(len(dropped)) for part in combinations(dropped, size))
            dropped = list(next(filter(self._accepted, parts), dropped))
        return (self._fix(tuple((name, None) for name in dropped)),)

    def _accepted(self, dropped: Iterable[str]) -> bool:
        return self._mended(self._resolve(tuple((name, None) for name in dropped))[1])

    def _mended(self, resolution: Resolution) -> bool:
        """Whether nothing refuses, and no more is left open than before."""
        return not resolution.violations and _limits(resolution) <= self.open

    def _resolve(self, changes: Changes) -> tuple[Draft, Resolution]:
        if changes in self.resolved:
            return self.resolved[changes]
        self.resolutions += 1
        typed = {**self.typed, **dict(changes)}
        sound, others, faults = read_typed(typed)
        draft = settle(Draft(sound, others, self.model, self.device, self.release))
        if faults:
            if not changes:
                raise ConfigError(faults)
            raise AssertionError(f"a rule proposed a value that is no value: {faults}")
        self.resolved[changes] = (draft, judge(draft))
        return self.resolved[changes]

    def _proposals(self, draft: Draft, resolution: Resolution, changed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Single changes that touch the first broken rule, of keywords not changed yet."""
        for keyword, value in self._for(draft, resolution.violations[0]):
            if keyword not in changed and self.typed.get(keyword) != value:
                yield keyword, value

    def _for(self, draft: Draft, violation: Violation) -> Iterator[tuple[str, Any]]:
        rule = BY_CODE[violation.code]
        for field in _ancestors(draft, violation.fields):
            keyword = KEYWORD_OF.get(field)
            if keyword is None:
                continue
            value = draft.values[field].value
            if isinstance(value, bool):
                yield keyword, not value
            if keyword in self.typed:
                yield keyword, None
        if isinstance(rule, Rule):
            for proposal in rule.proposals(draft):
                yield from (item for item in proposal.items() if not isinstance(item[1], int) or item[1] <= LARGEST)

    def _best(self, found: Mapping[Changes, Resolution]) -> list[Changes]:
        """Order repairs, and keep one of those that come to the same configuration."""
        ordered = sorted(enumerate(found), key=lambda pair: (self._typed_lost(pair[1]), pair[0]))
        kept: list[Changes] = []
        configs: list[object] = []
        for _, changes in ordered:
            config = found[changes].config or {name: one.value for name, one in found[changes].values.items()}
            if config not in configs:
                configs.append(config)
                kept.append(changes)
        return kept

    def _needed(self, found: Mapping[Changes, Resolution]) -> dict[Changes, Resolution]:
        """Leave out what a later change made needless (other ranks move the block size, too); keep the smallest."""
        needed: dict[Changes, Resolution] = {}
        for changes in sorted(found, key=self._typed_lost):
            part = self._smallest_part(changes)
            needed.setdefault(part, self._resolve(part)[1])
        least = min(map(len, needed))
        return {changes: resolution for changes, resolution in needed.items() if len(changes) == least}

    def _smallest_part(self, changes: Changes) -> Changes:
        if self.resolutions >= 2 * MAX_RESOLUTIONS:
            return changes
        parts = (part for size in range(1, len(changes)) for part in combinations(changes, size))
        return next((part for part in parts if self._mended(self._resolve(part)[1])), changes)

    def _typed_lost(self, changes: Changes) -> int:
        """How much of what was typed is gone: a changed value counts one, a dropped one two."""
        return sum((2 if value is None else 1) for keyword, value in changes if keyword in self.typed)

    @staticmethod
    def _fix(changes: Changes) -> Fix:
        return Fix(
            set={keyword: value for keyword, value in changes if value is not None},
            drop=tuple(keyword for keyword, value in changes if value is None),
        )


def _limits(resolution: Resolution) -> frozenset[tuple[str, tuple[str, ...]]]:
    return frozenset((limit.code, limit.fields) for limit in resolution.limits)


def _ancestors(draft: Draft, fields: Iterable[str]) -> list[str]:
    """Fields and what they follow from, causes before effects, each once."""
    found: dict[str, None] = {}

    def visit(field: str) -> None:
        if field in found or field not in draft.values:
            return
        for parent in draft.values[field].parents:
            visit(parent)
        found[field] = None

    for field in fields:
        visit(field)
    return list(found)


def apply(typed: Mapping[str, Any], fix: Fix) -> dict[str, Any]:
    """What the user would type after a repair."""
    return {name: value for name, value in {**typed, **fix.set}.items() if name not in fix.drop}
