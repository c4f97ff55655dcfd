"""What is drawn is of its type, and what is shown is the plainest."""

import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import find, given
from hypothesis import strategies as st
from msgspec import Meta

from staticfire.harness.sync.contract.agent.describe import described, plain
from staticfire.harness.sync.contract.draw import allows_none, drawable, plainest, values


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Part:
    size: Annotated[int, Meta(ge=3)]
    name: str | None = None


HINTS: list[Any] = [
    int, float, str, bool, Annotated[int, Meta(gt=4, lt=7)], Annotated[int, Meta(ge=5000)], int | None, Color,
    Literal["a", "b"], list[int], Part, Part | None, Annotated[str, Meta(min_length=3)], float | str | None,
]  # fmt: skip


@given(st.data())
@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_what_is_drawn_is_of_its_type(hint, data):
    msgspec.convert(data.draw(values(described(hint))), hint)


@pytest.mark.parametrize("hint", HINTS, ids=str)
def test_what_is_tried_without_drawing_is_of_its_type(hint):
    tried = plainest(described(hint))
    assert tried or hint == Annotated[int, Meta(gt=4, lt=7)] or hint == Annotated[int, Meta(ge=5000)]
    for value in tried:
        msgspec.convert(value, hint)


def test_a_number_that_is_recognised_is_what_everything_shrinks_to():
    assert find(values(described(int | None)), lambda value: value is not None) == 1056
    assert find(values(described(int)), lambda value: value != 1056) == 784


def test_none_is_drawn_where_it_is_allowed_and_asked_for():
    assert find(values(described(int | None)), lambda value: value is None) is None
    assert allows_none(described(Part | None))
    assert not allows_none(described(list[int | None]))


@given(values(described(int | None), none=False))
def test_none_is_not_drawn_where_it_is_not_asked_for(value):
    assert value is not None


def test_what_cannot_be_drawn_is_said():
    assert described(object) == {"is": "other"}
    assert not drawable(described(object))
    assert not drawable(described(None))


def test_equal_values_are_written_alike():
    assert plain({"b": {2, 1}, "a": Color.RED}) == plain({"a": Color.RED, "b": {1, 2}}) == {"a": "red", "b": [1, 2]}
    assert plain(Part(3)) == {"size": 3, "name": None}
    assert plain(object()) == "<object>"
