import dataclasses
import json
from enum import Enum
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.run import plain as module
from staticfire.harness.run.plain import plain

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.binary()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner)
    | st.tuples(inner)
    | st.dictionaries(st.integers() | st.text(st.characters(exclude_categories=())), inner),
    max_leaves=20,
)  # fmt: skip


@given(json_values)
def test_json_values_stay_as_they_are(value):
    assert plain(value) == value


@given(anything)
def test_whatever_comes_out_survives_strict_json(value):
    result = plain(value)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert msgspec.json.decode(msgspec.json.encode(result)) == result


@dataclasses.dataclass
class Point:
    x: int


class Colour(Enum):
    RED = 1


class Array:
    def tolist(self):
        return [1, [float("inf")]]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (2**63, str(2**63)),
        (-(2**63), str(-(2**63))),
        ("a\ud800b", "a?b"),
        (Path("/a/b"), "/a/b"),
        (Point(3), {"x": 3}),
        (Array(), [1, ["inf"]]),
        ({3, 1, 2}, [1, 2, 3]),
        ((1, (2,)), [1, [2]]),
        ({None: 1}, {"None": 1}),
        (Colour.RED, "<Colour.RED: 1>"),
    ],
)
def test_what_json_lacks_stays_readable(value, expected):
    assert plain(value) == expected


def test_size_is_bounded_and_says_so(monkeypatch):
    monkeypatch.setattr(module, "MAX_ITEMS", 2)
    monkeypatch.setattr(module, "MAX_TEXT", 3)
    assert plain([1, 2, 3]) == [1, 2, "... 1 more items"]
    assert plain({"a": 1, "b": 2, "c": 3}) == {"a": 1, "b": 2, "...": "1 more entries"}
    assert plain("abcdef") == "abc... (3 more characters)"


def test_a_value_that_holds_itself_ends():
    knot: list[object] = []
    knot.append(knot)
    assert json.dumps(plain(knot))
