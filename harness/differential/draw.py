"""Configurations drawn from a seed, near the values at which something changes.

Numbers come from what our own arithmetic settled for the keywords drawn so far: a length beside the context, a budget
beside the number of sequences, blocks beside what one request takes, each one less, one more, half and twice. So two
keywords meet where a rule between them decides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from random import Random
from typing import Any, Final

from staticfire.engine.config.device import Device
from staticfire.engine.config.draft import FIELD_OF, KEYWORD_OF, Draft
from staticfire.engine.config.model import ModelInfo
from staticfire.engine.config.release import EngineRelease
from staticfire.engine.config.resolver import settle
from staticfire.engine.config.rules.registry import CATALOGUE
from staticfire.engine.config.typed import FIT, read_typed
from staticfire.harness.differential.axes import Axes, Axis
from staticfire.harness.differential.base import Case
from staticfire.harness.differential.ours import limits

SMALL: Final = (1, 2, 3, 4, 8, 12, 16, 24, 32, 48, 64, 100, 128, 256, 512, 1000, 1024, 2048, 4096, 8192, 2**15, 2**30)
MOST_TYPED: Final = 6
FIRST_CHOICES: Final = 0.8
"""Share of names that are drawn from those that our catalogue implements; the others only say what is not known."""
OPTIONS: Final = 0.15
"""Share of configurations with one option that our catalogue knows and does not implement, or a sample."""
ONE_RULE: Final = 0.6
"""Share of configurations that begin with the keywords of one rule, and"""
EACH_FIELD: Final = 0.8
"""share of those keywords that are typed."""
MOST_TIMES: Final = 256
"""A number is at most this multiple of a usual one: engines lay out every stage and rank, and would do so for hours."""
BESIDE: Final = 0.7
"""Share of numbers that are drawn beside a settled value."""


def draw(
    axes: Axes,
    models: Mapping[str, ModelInfo],
    device: Device,
    release: EngineRelease,
    *,
    examples: int,
    seed: int,
) -> Iterator[Case]:
    """Draw configurations; the same ones for the same arguments.

    Args:
        axes: The keywords.
        models: Name -> model.
        device: The device, whose facts are among the numbers.
        release: The engine that is compared with.
        examples: How many, all different.
        seed: Of all that is random.
    """
    random = Random(seed)  # noqa: S311 -- examples, no secrets
    names = sorted(models)
    seen: set[str] = set()
    for _ in range(50 * examples):
        if len(seen) >= examples:
            return
        name = random.choice(names)
        case = Case(name, _Drawer(random, axes, models[name], device, release).typed())
        if case.key not in seen:
            seen.add(case.key)
            yield case


@dataclass(frozen=True, slots=True)
class _Drawer:
    """Draws what is typed for one model."""

    random: Random
    axes: Axes
    model: ModelInfo
    device: Device
    release: EngineRelease

    def typed(self) -> dict[str, Any]:
        random, typed = self.random, dict[str, Any]()
        for axis in self._chosen(self.axes.of("flag", "choice", "integer", "fraction")):
            typed[axis.name] = self._value(axis, typed)
        extra, sampled = self.axes.of("option", "sample"), self.axes.of("sample")
        if extra and random.random() < OPTIONS:
            axis = random.choice(sampled if sampled and random.random() < 0.5 else extra)
            typed[axis.name] = random.choice(axis.choices)
        return typed

    def _chosen(self, usual: Sequence[Axis]) -> list[Axis]:
        """Keywords that one rule reads, or any; and a few more."""
        random, by_name = self.random, {axis.name: axis for axis in usual}
        names: list[str] = []
        if random.random() < ONE_RULE:
            read = [KEYWORD_OF.get(field, field) for field in random.choice(CATALOGUE).fields]
            names = [name for name in read if name in by_name and random.random() < EACH_FIELD]
            random.shuffle(names)
        count = min(len(usual), 1 + int(random.betavariate(1.2, 2.0) * MOST_TYPED))
        others = [axis.name for axis in random.sample(usual, count) if axis.name not in names]
        return [by_name[name] for name in (names + others)[: max(count, len(names))]]

    def _value(self, axis: Axis, typed: Mapping[str, Any]) -> Any:
        if axis.kind == "choice":
            return self._choice(axis)
        if axis.kind == "integer":
            return _number(self.random, axis.name, self._settled(typed))
        if axis.kind == "fraction":
            return self.random.choice((0.01, 0.1, 0.5, 0.9, 0.92, 0.99, 1.0, self.random.random()))
        return self.random.choice(axis.choices)

    def _choice(self, axis: Axis) -> Any:
        """A name; mostly one under which our catalogue does not stop at what it does not implement."""
        if self.random.random() < FIRST_CHOICES:
            known = [value for value in axis.choices if not limits(self._settled({axis.name: value}))]
            if known:
                return self.random.choice(known)
        return self.random.choice(axis.choices)

    def _settled(self, typed: Mapping[str, Any]) -> Draft:
        sound, others, _ = read_typed(typed)
        return settle(Draft(sound, others, self.model, self.device, self.release))


def _number(random: Random, name: str, draft: Draft) -> int:
    usual = _usual(name, draft)
    if name == "max_model_len" and random.random() < 0.05:
        return FIT
    numbers = _beside(draft) if random.random() < BESIDE else SMALL
    numbers = [number for number in numbers if number <= MOST_TIMES * usual] or [usual]
    weights = [1 / (1 + abs(log2(number / usual))) for number in numbers]
    return random.choices(numbers, weights)[0]


def _usual(name: str, draft: Draft) -> int:
    """A number of the size that the keyword has: what is settled for it, or what one request takes."""
    if name == "num_gpu_blocks_override":
        return draft.demand.blocks + 1
    if name == "kv_cache_memory_bytes":
        return max(1, (draft.demand.blocks + 1) * draft.demand.block_bytes)
    settled = draft.values.get(FIELD_OF.get(name, ""))
    value = settled.value if settled else None
    if isinstance(value, int) and value > 0:
        return value
    return draft.max_model_len if name == "long_prefill_token_threshold" else 2


def _beside(draft: Draft) -> Sequence[int]:
    """Every settled number and every fact of the model that rules look at, and its neighbours."""
    need, model = draft.demand, draft.model
    facts = [
        *(value.value for value in draft.values.values()),
        draft.alignment.block_size,
        draft.alignment.mamba_block_size,
        draft.num_gpu_blocks,
        need.blocks,
        need.blocks + 1,
        (need.blocks + 1) * need.block_bytes,
        draft.max_num_seqs * need.recurrent_groups * need.recurrent_blocks + 1,
        len(model.layers),
        model.num_kv_heads,
        model.num_attention_heads,
        model.max_position_embeddings,
    ]
    numbers = {fact for fact in facts if isinstance(fact, int) and not isinstance(fact, bool) and fact > 0}
    near = {other for number in numbers for other in (number - 1, number, number + 1, number // 2, 2 * number)}
    return sorted(number for number in near if 0 < number < 2**50)
