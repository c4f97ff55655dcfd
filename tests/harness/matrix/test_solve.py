"""Feasibility against brute force."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.matrix.solve import Space


@st.composite
def spaces(draw):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=5))
    axes = st.integers(0, len(sizes) - 1)
    clause = st.dictionaries(axes, st.frozensets(st.integers(0, 2), min_size=1, max_size=3), min_size=1, max_size=3)
    clauses = draw(st.lists(clause, max_size=6))
    domains = [
        sorted(draw(st.sets(st.integers(0, size - 1), min_size=1 if draw(st.integers(0, 9)) else 0))) for size in sizes
    ]
    return domains, clauses


def rows(domains, clauses):
    """Every allowed row, by trying them all."""
    for values in product(*domains):
        if not any(all(values[axis] in banned for axis, banned in clause.items()) for clause in clauses):
            yield dict(enumerate(values))


@given(spaces(), st.data())
def test_complete_finds_a_row_exactly_when_there_is_one(drawn, data):
    domains, clauses = drawn
    space = Space(domains, clauses)
    partial = data.draw(st.dictionaries(st.integers(0, len(domains) - 1), st.integers(0, 3)))
    possible = [row for row in rows(domains, clauses) if partial.items() <= row.items()]
    found = space.complete(partial)
    assert (found is not None) == bool(possible)
    assert space.feasible(partial) == bool(possible)
    if found is not None:
        assert found in possible


@given(spaces(), st.data())
def test_still_feasible_agrees_with_feasible(drawn, data):
    domains, clauses = drawn
    space = Space(domains, clauses)
    before = data.draw(st.dictionaries(st.integers(0, len(domains) - 1), st.integers(0, 2)))
    axis = data.draw(st.integers(0, len(domains) - 1))
    if axis in before or not space.feasible(before):
        return
    for value in domains[axis]:
        partial = {**before, axis: value}
        assert space.still_feasible(partial, axis) == space.feasible(partial)


def test_backtracking_is_needed_and_done():
    # x != y, y != z, z != x over two values each: no row; over three values: there is one.
    def different(a, b, size):
        return [{a: frozenset({v}), b: frozenset({v})} for v in range(size)]

    for size, feasible in ((2, False), (3, True)):
        clauses = [c for a, b in ((0, 1), (1, 2), (2, 0)) for c in different(a, b, size)]
        assert Space([range(size)] * 3, clauses).feasible({}) is feasible


def test_a_partial_row_is_not_changed():
    partial = {0: 1}
    Space([range(2)] * 3, []).complete(partial)
    assert partial == {0: 1}
