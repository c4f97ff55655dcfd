"""The verifier against hand counts, and against arrays that are wrong."""

from pathlib import Path

import pytest

from staticfire.harness.matrix import verify as module
from staticfire.harness.matrix.expand import valid_rows
from staticfire.harness.matrix.verify import verify

from .toy import every_row, toy

BODY = """
[axes]
model = ["jamba-tiny", "llama-tiny"]
a = [1, 2]
b = [true, false]
[[constraint]]
when = { a = 1, b = true }
reason = "one is false"
kind = "impossible"
"""


def test_counts_by_hand():
    document = toy(BODY).document
    rows = [row for row in every_row(document) if not (row["a"] == 1 and row["b"] is True)]
    coverage = verify(document, rows)
    # model x a: 4, model x b: 4, a x b: 4 - 1.
    assert coverage.by_strength == {2: (11, 11)}
    assert coverage.complete
    (((combination, why),)) = coverage.infeasible
    assert {axis: key[1] for axis, key in combination} == {"a": 1, "b": True}
    assert [constraint.reason for constraint in why] == ["one is false"]


def test_a_missing_pair_is_named():
    document = toy(BODY).document
    rows = [row for row in every_row(document) if not (row["a"] == 1 and row["b"] is True)]
    coverage = verify(document, [row for row in rows if not (row["a"] == 2 and row["b"] is False)])
    assert not coverage.complete
    assert [{axis: key[1] for axis, key in combination} for combination in coverage.missing] == [{"a": 2, "b": False}]
    assert coverage.by_strength == {2: (11, 10)}


def test_a_row_that_is_not_valid_is_named():
    document = toy(BODY).document
    coverage = verify(document, every_row(document))
    assert not coverage.missing
    assert not coverage.complete
    assert {row["model"] for row in coverage.invalid} == {"jamba-tiny", "llama-tiny"}


def test_one_is_not_true():
    document = toy('[axes]\nmodel = ["jamba-tiny"]\na = [1, true]\nb = [0, false]').document
    assert verify(document, valid_rows(document)).complete
    assert not verify(document, [row for row in every_row(document) if row["a"] is True]).complete


def test_infeasible_only_together():
    body = """
[axes]
model = ["jamba-tiny"]
a = [1, 2]
b = [1, 2]
c = [1, 2]
[[constraint]]
when = { a = 1, b = 1 }
reason = "first"
kind = "impossible"
[[constraint]]
when = { b = 2, c = 1 }
reason = "second"
kind = "impossible"
"""
    document = toy(body).document
    coverage = verify(document, valid_rows(document))
    assert coverage.complete
    found = {tuple((axis, key[1]) for axis, key in c): [w.reason for w in why] for c, why in coverage.infeasible}
    assert found == {
        (("a", 1), ("b", 1)): ["first"],
        (("b", 2), ("c", 1)): ["second"],
        (("a", 1), ("c", 1)): [],
    }


def test_submodels_are_checked_at_their_own_strength():
    body = """
[axes]
model = ["jamba-tiny"]
a = [1, 2]
b = [1, 2]
c = [1, 2]
[[submodel]]
axes = ["a", "b", "c"]
strength = 3
"""
    document = toy(body).document
    rows = valid_rows(document)
    assert verify(document, rows).by_strength == {2: (18, 18), 3: (8, 8)}
    assert len(verify(document, rows[1:]).missing) == 1


def test_a_product_too_large_to_enumerate_is_said(monkeypatch):
    monkeypatch.setattr(module, "LIMIT", 3)
    document = toy(BODY).document
    with pytest.raises(OverflowError, match="a, b have more than 3"):
        verify(document, [])


def test_it_imports_nothing_of_the_generator():
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert "matrix.cover" not in source
    assert "matrix.solve" not in source
    assert "matrix.expand" not in source
