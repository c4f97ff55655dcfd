"""The smallest changes that make a refused configuration accepted, each verified by resolving again.

A breadth-first search over changes of keywords. Each broken rule proposes: drop or flip what was typed on its chain,
flip a default on it, and what the rule itself knows. Whatever is still refused after a change proposes again, so that
several needed changes become one repair. Nothing is returned that resolution did not accept.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from staticfire.engine.config.device import CPU, Device
from staticfire.engine.config.draft import KEYWORD_OF, Draft
from staticfire.engine.config.errors import ConfigError
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.resolution import Fix, Resolution, Violation
from staticfire.engine.config.resolver import judge, settle
from staticfire.engine.config.rules.base import Rule
from staticfire.engine.config.rules.registry import BY_CODE
from staticfire.engine.config.typed import read_typed

MAX_CHANGES: Final = 6
MAX_RESOLUTIONS: Final = 2000
"""Resolutions that one search may take, about 0.2 s."""

Changes = tuple[tuple[str, Any], ...]
"""Sorted (keyword, value) pairs; a value of None drops the keyword."""


def repairs(typed: Mapping[str, Any], model: ModelInfo, device: Device = CPU, *, limit: int = 3) -> tuple[Fix, ...]:
    """Find the smallest repairs of a refused configuration.

    Args:
        typed: What the user wrote; without field errors.
        model: The model.
        device: The device.
        limit: How many to return at most.

    Returns:
        Verified repairs of equal, smallest size, best first: those that keep what was typed before those that change
        it, then in the order of the rules. Empty where it is accepted already, or where nothing was found.

    Raises:
        ConfigError: `typed` has field errors.
    """
    return _Search(dict(typed), model, device).run(limit)


class _Search:
    def __init__(self, typed: dict[str, Any], model: ModelInfo, device: Device) -> None:
        self.typed = {name: value for name, value in typed.items() if value is not None}
        self.model = model
        self.device = device
        self.resolutions = 0

    def run(self, limit: int) -> tuple[Fix, ...]:
        draft, resolution = self._resolve(())
        if resolution.accepted:
            return ()
        frontier: dict[Changes, tuple[Draft, Resolution]] = {(): (draft, resolution)}
        seen: set[Changes] = {()}
        for _ in range(MAX_CHANGES):
            found, frontier = self._grow(frontier, seen)
            if found or not frontier:
                return tuple(self._fix(changes) for changes in self._best(found)[:limit])
        return ()

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
                if resolution_.accepted:
                    found[larger] = resolution_
                else:
                    refused[larger] = (draft_, resolution_)
        return found, refused

    def _resolve(self, changes: Changes) -> tuple[Draft, Resolution]:
        self.resolutions += 1
        typed = {**self.typed, **dict(changes)}
        sound, others, faults = read_typed(typed)
        draft = settle(Draft(sound, others, self.model, self.device))
        if faults:
            if not changes:
                raise ConfigError(faults)
            raise AssertionError(f"a rule proposed a value that is no value: {faults}")
        return draft, judge(draft)

    def _proposals(self, draft: Draft, resolution: Resolution, changed: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Single changes that touch a broken rule, of keywords not changed yet."""
        for violation in resolution.violations:
            for keyword, value in self._for(draft, violation):
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
                yield from proposal.items()

    def _best(self, found: Mapping[Changes, Resolution]) -> list[Changes]:
        """Order repairs, and keep one of those that come to the same configuration."""
        ordered = sorted(enumerate(found), key=lambda pair: (self._typed_lost(pair[1]), pair[0]))
        kept: list[Changes] = []
        configs: list[object] = []
        for _, changes in ordered:
            config = found[changes].config
            if config not in configs:
                configs.append(config)
                kept.append(changes)
        return kept

    def _typed_lost(self, changes: Changes) -> int:
        """How much of what was typed is gone: a changed value counts one, a dropped one two."""
        return sum((2 if value is None else 1) for keyword, value in changes if keyword in self.typed)

    @staticmethod
    def _fix(changes: Changes) -> Fix:
        return Fix(
            set={keyword: value for keyword, value in changes if value is not None},
            drop=tuple(keyword for keyword, value in changes if value is None),
        )


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
