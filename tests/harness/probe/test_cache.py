"""The cache of answers: a faithful copy, bounded, and never a reason to fail."""

import sqlite3
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.probe.base import PARTS, Accepted, Crashed, Note, NotKnown, Rejected, Seen, Settled, Undecided
from staticfire.harness.probe.cache import AnswerCache, decode, encode, key_of

TEXT = st.text(max_size=20)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
NOTES = st.lists(st.builds(Note, TEXT, TEXT), max_size=3).map(tuple)
VALUES = st.dictionaries(TEXT, PLAIN, max_size=4)
OUTCOMES = st.one_of(
    st.builds(Accepted, VALUES, VALUES, NOTES, st.builds(Settled, VALUES) | st.builds(NotKnown, TEXT)),
    st.builds(Undecided, VALUES, st.builds(NotKnown, TEXT), NOTES),
    st.builds(
        Rejected,
        st.sampled_from(["field", "rule"]),
        TEXT,
        TEXT,
        st.lists(TEXT, max_size=3).map(tuple),
        st.sampled_from(PARTS),
        NOTES,
        resolved=VALUES,
        doubt=TEXT,
    ),
    st.builds(Crashed, TEXT, st.booleans()),
)


@given(OUTCOMES)
def test_an_outcome_comes_back_as_it_was(outcome):
    assert decode(encode(outcome)) == outcome


@given(st.binary(max_size=200))
def test_bytes_that_are_no_outcome_are_none(blob):
    assert decode(blob) is None


@given(st.dictionaries(TEXT, PLAIN, max_size=5))
def test_a_key_depends_on_content_and_not_on_order(parts):
    assert key_of(parts) == key_of(dict(reversed(list(parts.items()))))
    assert key_of(parts) != key_of({**parts, "one more": 1})


def test_true_and_one_are_different_values_of_a_keyword():
    assert key_of({"arguments": {"x": True}}) != key_of({"arguments": {"x": 1}})


@pytest.fixture
def cache(tmp_path):
    opened = AnswerCache(tmp_path / "answers.sqlite")
    yield opened
    opened.close()


def test_kept_answers_are_found_by_another_process_of_the_same_user(cache):
    refused = Rejected("rule", "no", "x.py:1", values=(Seen("cache.x", [1, None], default=True),))
    cache.put({"a": refused, "b": Accepted({"x": 1})})
    other = AnswerCache(cache.path)
    assert other.get(["a", "b", "c"]) == {"a": refused, "b": Accepted({"x": 1})}
    assert (other.hits, other.misses) == (2, 1)
    other.close()


def test_a_crash_that_may_not_happen_again_is_not_kept(cache):
    cache.put({"killed": Crashed("signal 9"), "absent": Crashed("no such class", lasting=True)})
    assert cache.get(["killed", "absent"]) == {"absent": Crashed("no such class", lasting=True)}


def test_thousands_of_keys_are_asked_for_at_once(cache):
    cache.put({str(number): Accepted({"n": number}) for number in range(3000)})
    found = cache.get(str(number) for number in range(4000))
    assert len(found) == 3000
    assert found["2999"] == Accepted({"n": 2999})


def test_the_file_is_bounded_and_what_was_used_last_stays(tmp_path, monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr("staticfire.harness.probe.cache.time.time", lambda: next(clock))
    noise = [Accepted({"text": bytes(range(97, 123)).decode() * 40, "number": number}) for number in range(200)]
    size = len(encode(noise[0]))
    cache = AnswerCache(tmp_path / "answers.sqlite", limit=size * 20)
    for number, outcome in enumerate(noise):
        cache.put({str(number): outcome})
        cache.get(["0"])  # used again and again
    kept = cache.get(str(number) for number in range(200))
    assert 10 <= len(kept) <= 21
    assert "0" in kept
    assert "199" in kept
    assert "50" not in kept
    cache.close()


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4000])
def test_a_damaged_file_is_as_good_as_none(tmp_path, content):
    path = tmp_path / "answers.sqlite"
    path.write_bytes(content)
    cache = AnswerCache(path)
    cache.put({"a": Accepted()})
    assert cache.get(["a"]) == {"a": Accepted()}
    cache.close()


def test_a_file_of_another_format_is_emptied(cache):
    cache.put({"a": Accepted()})
    with sqlite3.connect(cache.path) as connection:
        connection.execute("PRAGMA user_version = 999")
    connection.close()
    other = AnswerCache(cache.path)
    assert other.get(["a"]) == {}
    other.close()


def test_a_damaged_row_is_asked_for_again(cache):
    cache.put({"a": Accepted()})
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE answers SET answer = ?", (b"\x00",))
    connection.close()
    assert cache.get(["a"]) == {}


def test_where_nothing_can_be_written_answers_live_as_long_as_the_run(tmp_path):
    (tmp_path / "file").write_text("in the way")
    cache = AnswerCache(tmp_path / "file" / "answers.sqlite")
    cache.put({"a": Accepted()})
    assert cache.get(["a"]) == {"a": Accepted()}
    cache.close()


FILL = """
import sys
from pathlib import Path
from staticfire.harness.probe.base import Accepted
from staticfire.harness.probe.cache import AnswerCache

cache = AnswerCache(Path(sys.argv[1]))
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 50):
    cache.put({str(number): Accepted({"n": number})})
cache.close()
"""


def test_two_processes_write_at_once(tmp_path):
    path = tmp_path / "answers.sqlite"
    writers = [subprocess.Popen([sys.executable, "-c", FILL, str(path), start]) for start in ("0", "50")]
    assert [writer.wait() for writer in writers] == [0, 0]
    cache = AnswerCache(path)
    assert len(cache.get(str(number) for number in range(100))) == 100
    cache.close()
