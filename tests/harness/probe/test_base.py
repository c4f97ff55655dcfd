"""The three parts of an answer: what is not known is never accepted, and nothing is known beyond a part that stops."""

import pytest

from staticfire.harness.probe.base import (
    PARTS,
    Accepted,
    Crashed,
    NotKnown,
    Parts,
    Rejected,
    Settled,
    Undecided,
    parts_of,
)

ROOM = Settled({"blocks_at_most": 7})


def shape(parts: Parts) -> str:
    letters = {Settled: "a", Rejected: "r", NotKnown: "?"}
    return "".join(letters[type(part)] for part in (parts.front_end, parts.worker, parts.capacity))


@pytest.mark.parametrize(
    ("outcome", "expected", "unknown"),
    [
        (Accepted(capacity=ROOM), "aaa", None),
        (Accepted(capacity=NotKnown("windows")), "aa?", ("capacity", "windows")),
        (Undecided({"a": 1}, NotKnown("no package")), "a??", ("worker", "no package")),
        (Crashed("no class"), "???", ("front end", "no class")),
        (Rejected("rule", "no", "x"), "r??", None),
        (Rejected("rule", "no", "x", phase="worker"), "ar?", None),
        (Rejected("rule", "no", "x", phase="capacity"), "aar", None),
    ],
)
def test_the_parts_of_every_kind_of_answer(outcome, expected, unknown):
    parts = parts_of(outcome)
    assert shape(parts) == expected
    assert parts.first_unknown == unknown


def test_an_answer_that_says_nothing_of_the_cache_does_not_know_it():
    assert isinstance(Accepted().capacity, NotKnown)


def test_what_is_not_known_holds_no_values_and_is_not_accepted():
    assert not isinstance(Undecided({}, NotKnown("why")), Accepted)
    for one in (Undecided({}, NotKnown("why")), NotKnown("why")):
        assert not hasattr(one, "runtime")
        assert not hasattr(one, "values")


def test_values_of_each_part():
    parts = parts_of(Accepted({"cache.a": 1}, {"cache.a": 2}, capacity=ROOM))
    assert (parts.front_end, parts.worker, parts.capacity) == (Settled({"cache.a": 1}), Settled({"cache.a": 2}), ROOM)
    refused = Rejected("rule", "no", "x", phase="worker", resolved={"cache.a": 1})
    assert parts_of(refused).front_end == Settled({"cache.a": 1})
    assert len(PARTS) == 3
