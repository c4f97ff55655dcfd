from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.plan import Plan


def take(plan, worker):
    taken = plan.take(worker)
    assert taken is not None
    return taken


def cell(number, model, verdict="valid"):
    return Cell(f"c{number}", {"model": model}, verdict)


models = st.lists(st.sampled_from("abcd"), max_size=30)


@given(models, st.data())
def test_every_cell_is_handed_out_once_and_nobody_waits_in_vain(names, data):
    cells = [cell(number, name) for number, name in enumerate(names)]
    plan = Plan(cells)
    taken = []
    for left in range(len(cells), 0, -1):
        assert len(plan) == left
        if data.draw(st.booleans()):
            plan.forget(data.draw(st.integers(1, 3)))
        taken.append(take(plan, data.draw(st.integers(1, 3))))
    assert Counter(taken_cell.id for taken_cell in taken) == Counter(c.id for c in cells)
    assert plan.take(1) is None
    assert len(plan) == 0


@given(models)
def test_a_lone_worker_finishes_a_group_before_the_next(names):
    plan = Plan([cell(number, name) for number, name in enumerate(names)])
    order = [take(plan, 1).model for _ in names]
    changes = sum(a != b for a, b in pairwise(order))
    assert changes == max(0, len(set(names)) - 1)


def test_the_largest_group_goes_first_and_keeps_its_order():
    plan = Plan([cell(0, "a"), cell(1, "b"), cell(2, "b"), cell(3, "b")])
    assert [take(plan, 1).id for _ in range(4)] == ["c1", "c2", "c3", "c0"]


def test_a_second_worker_takes_another_group_and_steals_only_when_there_is_none():
    plan = Plan([*(cell(n, "a") for n in range(4)), cell(4, "b")])
    assert take(plan, 1).model == "a"
    assert take(plan, 2).model == "b"
    assert take(plan, 2).model == "a"


def test_a_cell_given_back_is_next_again():
    plan = Plan([cell(0, "a"), cell(1, "a"), cell(2, "b")])
    first = take(plan, 1)
    plan.give_back(first)
    plan.forget(1)
    assert take(plan, 1) == first
    last = Plan([cell(0, "a")])
    last.give_back(take(last, 1))
    assert len(last) == 1


def test_cells_to_be_refused_are_a_group_of_their_own():
    plan = Plan([cell(0, "a"), cell(1, "a", "refused"), cell(2, "b", "refused")])
    assert [take(plan, 1).id, take(plan, 1).id, take(plan, 1).id] == ["c1", "c2", "c0"]


def test_a_worker_takes_cells_of_its_pool_only_and_goes_where_most_wait_for_each():
    cells = [cell(number, name) for number, name in enumerate("aaaaab")]
    plan = Plan(cells, pool_of=lambda cell: cell.model)
    assert plan.neediest([]) == "a"
    assert plan.neediest(["a"]) == "a"
    assert plan.neediest(["a"] * 5) == "b"
    taken = plan.take(1, "b")
    assert taken is not None
    assert (taken.id, plan.take(1, "b")) == ("c5", None)
    assert plan.neediest(["a"] * 5) == "a"
    plan.give_back(taken)
    assert plan.take(2, "b") == taken
    assert [plan.take(3, "a") for _ in range(6)] == [*cells[:5], None]
    assert plan.neediest([]) is None
