"""A whole comparison: draw, ask both sides, compare, take out what is explained, group and shrink the rest."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.reader import model_info
from staticfire.engine.config.release import VLLM_RELEASES, EngineRelease
from staticfire.harness.check import engine_args
from staticfire.harness.differential.axes import Axes, shared
from staticfire.harness.differential.base import Answer, Case, Comparison, Disagreement
from staticfire.harness.differential.compare import compare
from staticfire.harness.differential.draw import draw
from staticfire.harness.differential.explained import Explained, Row, subtract
from staticfire.harness.differential.group import Group, grouped, shrunk
from staticfire.harness.differential.ours import Ours
from staticfire.harness.differential.theirs import Theirs
from staticfire.harness.errors import InputError
from staticfire.harness.models import catalog
from staticfire.harness.probe.base import EngineIdentity, EngineProbe
from staticfire.harness.probe.models import ModelSource

FULL: Final = 1500
"""Examples from which a row that explains nothing is called stale."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a comparison found.

    Attributes:
        engine: Which engine answered.
        release: The release that our side imitated.
        device: Name of the device.
        seed: Of the draw.
        axes: The keywords that both know.
        models: Names of the models.
        comparisons: One for each example.
        explained: What the table explains, and what is left.
        groups: What is left, grouped, each with its smallest example.
    """

    engine: EngineIdentity
    release: EngineRelease
    device: str
    seed: int
    axes: Axes
    models: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    explained: Explained
    groups: tuple[Group, ...]

    @property
    def full(self) -> bool:
        """Whether there were enough examples to call a row stale."""
        return len(self.comparisons) >= FULL

    @property
    def stale(self) -> tuple[Row, ...]:
        """Rows that explain nothing in a full run."""
        return self.explained.stale if self.full else ()

    def counts(self, subject: str) -> Counter[str]:
        """How the examples came out: `configuration` or `capacity`."""
        return Counter(getattr(one, subject) for one in self.comparisons)

    def unknown(self) -> Counter[tuple[str, str, str]]:
        """Subject, side and reason -> how many examples are not known."""
        return Counter(gap for one in self.comparisons for gap in one.unknown)


@dataclass(frozen=True, slots=True)
class Both:
    """Both sides of a comparison.

    Attributes:
        ours: Answers by our rules.
        theirs: Answers of the engine.
        known: Comparisons made so far, by case.
    """

    ours: Ours
    theirs: Theirs
    known: dict[str, Comparison] = field(default_factory=dict)

    def compare(self, cases: Sequence[Case]) -> list[Comparison]:
        """Ask both about each case, once."""
        fresh = {case.key: case for case in cases if case.key not in self.known}
        answers: list[Answer] = self.theirs.answers([*fresh.values()]) if fresh else []
        for (key, case), theirs in zip(fresh.items(), answers, strict=True):
            self.known[key] = compare(case, self.ours.answer(case), theirs)
        return [self.known[case.key] for case in cases]


def release_of(identity: EngineIdentity) -> EngineRelease:
    """The release to imitate for an engine: its own, or the newest that is known and not newer than it.

    Raises:
        InputError: It is older than every release that is known.
    """
    version = _numbers(identity.version)
    older = [release for release in VLLM_RELEASES if _numbers(release.version) <= version]
    if not older:
        known = ", ".join(release.version for release in VLLM_RELEASES)
        raise InputError(f"vLLM {identity.version} is older than every release that is known: {known}.")
    return max(older, key=lambda release: _numbers(release.version))


def _numbers(version: str) -> tuple[int, ...]:
    parts = version.split("+", maxsplit=1)[0].split(".")
    return tuple(int(digits) for part in parts if (digits := "".join(c for c in part if c.isdigit())))


def run(
    probe: EngineProbe,
    device: Device,
    *,
    examples: int,
    seed: int,
    rows: Sequence[Row],
    keywords: frozenset[str] | None = None,
    ours: Callable[[Mapping[str, ModelInfo], Device, EngineRelease], Ours] = Ours,
    say: Callable[[str], None] = lambda _: None,
) -> Result:
    """Compare our rules with an engine.

    Args:
        probe: Of the engine.
        device: The device that both judge for.
        examples: How many configurations are drawn.
        seed: Of the draw.
        rows: The table of explained disagreements.
        keywords: The keywords of the engine; by default those of its source.
        ours: Makes our side.
        say: Told what is done.

    Raises:
        InputError: The engine cannot be asked, or its keywords cannot be read.
    """
    identity = probe.identity
    release = release_of(identity)
    names = keywords or engine_args.names(Path(identity.where), offline=True)
    if not names:
        raise InputError(f"{identity.where}: the keywords of the engine's arguments cannot be read in its source.")
    models = {name: model_info(catalog.load(name).config, name) for name in catalog.names()}
    source = ModelSource()
    folders = {name: str(source.put(catalog.load(name).config, "matrices").path) for name in models}
    axes = shared(names)
    both = Both(ours(models, device, release), Theirs(probe, folders))
    cases = list(draw(axes, models, device, release, examples=examples, seed=seed))
    say(f"asking {identity.name} {identity.version} about {len(cases)} configurations")
    comparisons = both.compare(cases)
    explained = subtract((one for each in comparisons for one in each.disagreements), rows, release.name, device.name)
    left = grouped(explained.open)
    if left:
        say(f"looking for the smallest examples of {len(left)} groups")
    groups = shrunk(left.values(), lambda some: [_open(one, rows, release, device) for one in both.compare(some)])
    return Result(
        identity,
        release,
        device.name,
        seed,
        axes,
        tuple(models),
        tuple(comparisons),
        explained,
        tuple(groups),
    )


def _open(one: Comparison, rows: Sequence[Row], release: EngineRelease, device: Device) -> tuple[Disagreement, ...]:
    """What no row explains: an example must not shrink into one that is explained."""
    return subtract(one.disagreements, rows, release.name, device.name).open
