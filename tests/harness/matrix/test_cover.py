"""Covering arrays: complete, valid, deterministic, and not much larger than they must be."""

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.matrix.cover import cover
from staticfire.harness.matrix.solve import Space


@st.composite
def problems(draw):
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    axes = st.integers(0, len(sizes) - 1)
    clause = st.dictionaries(axes, st.frozensets(st.integers(0, 3), min_size=1, max_size=2), min_size=1, max_size=3)
    return sizes, draw(st.lists(clause, max_size=5)), draw(st.integers(1, 3)), draw(st.integers(0, 3))


def allowed(sizes, clauses):
    return [
        row
        for row in product(*map(range, sizes))
        if not any(all(row[axis] in banned for axis, banned in clause.items()) for clause in clauses)
    ]


@given(problems())
def test_every_feasible_combination_is_covered_by_allowed_rows(problem):
    sizes, clauses, strength, seed = problem
    wanted = list(combinations(range(len(sizes)), min(strength, len(sizes))))
    found = cover(Space([range(size) for size in sizes], clauses), wanted, [], seed)
    rows = [tuple(row[axis] for axis in range(len(sizes))) for row in found]
    possible = allowed(sizes, clauses)
    assert set(rows) <= set(possible)
    for axes in wanted:
        feasible = {tuple(row[axis] for axis in axes) for row in possible}
        assert {tuple(row[axis] for axis in axes) for row in rows} == feasible
    assert cover(Space([range(size) for size in sizes], clauses), wanted, [], seed) == found


def test_the_case_on_which_row_filters_lose_pairs():
    """Six binary axes and one excluded pair: the other 59 pairs must all be there."""
    clauses = [{0: frozenset({1}), 1: frozenset({1})}]
    wanted = list(combinations(range(6), 2))
    rows = cover(Space([range(2)] * 6, clauses), wanted, [], 0)
    pairs = {(axes, tuple(row[axis] for axis in axes)) for row in rows for axes in wanted}
    assert len(pairs) == 15 * 4 - 1
    assert len(rows) <= 9


@pytest.mark.parametrize(("sizes", "most"), [([3] * 4, 12), ([3] * 13, 24), ([2] * 10, 12), ([4] * 5, 28)])
def test_arrays_are_not_much_larger_than_the_best_known(sizes, most):
    """Best known: 9, 15, 6 and 16 rows."""
    rows = cover(Space([range(size) for size in sizes], []), list(combinations(range(len(sizes)), 2)), [], 0)
    assert len(rows) <= most


def test_seeds_come_first_and_are_completed():
    rows = cover(Space([range(3)] * 3, []), list(combinations(range(3), 2)), [{0: 2, 1: 2}, {2: 1}], 0)
    assert (rows[0][0], rows[0][1]) == (2, 2)
    assert rows[1][2] == 1
    assert len(rows) <= 13


@given(problems(), st.data())
def test_axes_at_rest_lose_no_combination(problem, data):
    sizes, clauses, strength, seed = problem
    wanted = list(combinations(range(len(sizes)), min(strength, len(sizes))))
    rest = {axis: data.draw(st.integers(0, size - 1)) for axis, size in enumerate(sizes) if data.draw(st.booleans())}
    found = cover(Space([range(size) for size in sizes], clauses), wanted, [], seed, rest)
    rows = {tuple(row[axis] for axis in range(len(sizes))) for row in found}
    possible = allowed(sizes, clauses)
    assert rows <= set(possible)
    for axes in wanted:
        assert {tuple(row[axis] for axis in axes) for row in rows} == {
            tuple(r[axis] for axis in axes) for r in possible
        }


def test_an_axis_leaves_its_rest_only_where_that_gains_something():
    """Every pair with 5 values elsewhere takes at least 5 rows off the rest, of the 125 that the other axes take."""
    sizes, dear = [5, 5, 5, 2], 3
    wanted = [(0, 1, 2), *combinations(range(4), 2)]
    rows = cover(Space([range(size) for size in sizes], []), wanted, [], 0, {dear: 0})
    careless = cover(Space([range(size) for size in sizes], []), wanted, [], 0)
    assert len(rows) >= 125
    assert 5 <= sum(row[dear] for row in rows) <= 15
    assert sum(row[dear] for row in careless) > 40
