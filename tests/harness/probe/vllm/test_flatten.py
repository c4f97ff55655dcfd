"""Resolved configurations as plain values."""

import enum
import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.probe.vllm.agent.flatten import ABSENT, flatten, plain


class Level(enum.IntEnum):
    HIGH = 3


class Mode(enum.StrEnum):
    FULL = "full"


@dataclass
class Inner:
    depth: int = 2


@dataclass
class Section:
    size: int = 16
    level: Level = Level.HIGH
    mode: Mode = Mode.FULL
    inner: Inner = field(default_factory=Inner)
    names: Any = ("b", "a")
    handle: Any = object


@dataclass
class Whole:
    cache_config: Section = field(default_factory=Section)
    seed: int | None = None


def test_sections_lose_their_suffix_and_objects_are_left_out():
    assert flatten(Whole()) == {
        "cache.size": 16,
        "cache.level": "HIGH",
        "cache.mode": "FULL",
        "cache.inner.depth": 2,
        "cache.names": ["b", "a"],
        "seed": None,
    }


def test_sets_have_one_order():
    assert plain({"b", "a", "c"}) == ["a", "b", "c"]


def test_lists_that_are_too_long_or_hold_objects_are_absent():
    assert plain([object()]) is ABSENT
    assert plain({"a": [object()]}) is ABSENT
    assert plain(list(range(1000))) is ABSENT


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(Level),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@given(VALUES)
def test_what_is_said_is_strict_json(value):
    said = plain(value)
    if said is not ABSENT:
        json.loads(json.dumps(said, allow_nan=False))
