"""Repairs of cells: tried on the engine, one change at a time, and silence where nothing can be tried."""

import pytest

from staticfire.harness.matrix import load
from staticfire.harness.probe.base import Accepted, Rejected
from staticfire.harness.probe.reference import ReferenceProbe
from staticfire.harness.triage.base import Failure, Seen
from staticfire.harness.triage.group import RuleFacts, triage
from staticfire.harness.triage.repair import of_cell

BROKEN = [cell for cell in load("hybrid").cells() if cell.rules == ("SF101",)]


def failed(cell, file="hybrid"):
    return Failure(cell.id, "x (SF101)", cell=True, rule="SF101", rerun=f"staticfire run {file} --cell {cell.id}")


@pytest.mark.parametrize("cell", BROKEN, ids=lambda cell: cell.id)
def test_a_repair_of_a_cell_is_one_that_the_engine_accepts(cell):
    repair = of_cell(failed(cell), {"enable_chunked_prefill": True})
    assert repair == "enable_chunked_prefill=True"
    probe = ReferenceProbe()
    assert isinstance(probe.ask(cell.model, cell.config), Rejected)
    assert isinstance(probe.ask(cell.model, {**cell.config, "enable_chunked_prefill": True}), Accepted)


def test_without_a_usual_one_a_flip_is_found():
    assert of_cell(failed(BROKEN[0]), {}) in {
        "enable_chunked_prefill=True",
        "enable_prefix_caching=False",
        "drop enable_chunked_prefill",
    }


def test_what_cannot_be_tried_is_not_claimed():
    valid = next(cell for cell in load("hybrid").cells() if cell.verdict == "valid")
    assert of_cell(failed(valid), {}) == ""
    assert of_cell(failed(BROKEN[0], "nowhere.toml"), {}) == ""
    assert of_cell(Failure("t.py::x", "SF101", rerun="pytest t.py::x"), {}) == ""


def test_the_group_of_a_cell_says_that_its_repair_was_tried():
    facts = RuleFacts("align", "why", "allow it", {"enable_chunked_prefill": True})
    (group,) = triage([Seen("r", 1, (failed(BROKEN[0]),))], lambda _: facts).groups
    assert (group.repair, group.verified) == ("enable_chunked_prefill=True", True)
