"""What to try again: cells by one command a matrix, and steps with all that they wait for, or an error."""

import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline.steps import Block, Command, Dependency, Group, Pipeline
from staticfire.harness.triage.base import Failure
from staticfire.harness.triage.retry import commands, step_keys


def cell(name, options=""):
    return Failure(name, "x", cell=True, rerun=f"staticfire run hybrid --cell {name}{options}")


def step(key, *after):
    return Command(label=key, key=key, commands=("true",), depends_on=after)


PIPELINE = Pipeline(
    steps=(
        Group(group="checks", key="checks", steps=(step("lint"), step("types", "lint"))),
        step("hybrid-1", "types"),
        step("hybrid-2", Dependency(step="types")),
        Block(block="Run?", key="ask"),
        step("unit", "ask"),
    )
)


def test_cells_of_a_matrix_are_one_command_and_tests_another():
    triton = " --kernel-backend triton"
    failures = [
        *(cell("a"), cell("b"), cell("a"), cell("c", triton)),
        Failure("t.py::x[a b]", "m", file="t.py"),
        Failure("l:3", "m"),
    ]
    assert commands(failures) == (
        "staticfire run hybrid --cell a --cell b",
        "staticfire run hybrid --kernel-backend triton --cell c",
        "pytest 't.py::x[a b]'",
    )
    assert commands([]) == ()


def failed(*reports):
    return [Failure("x", "m", report=report) for report in reports]


def test_steps_come_with_all_that_they_wait_for_in_order():
    assert step_keys(failed("r/hybrid/2/junit.xml"), PIPELINE) == ("lint", "types", "hybrid-2")
    assert step_keys(failed("logs/unit.log", "logs/lint.txt"), PIPELINE) == ("lint", "ask", "unit")
    assert step_keys(failed("r/unit/1/junit.xml"), PIPELINE) == ("ask", "unit")
    assert step_keys([], PIPELINE) == ()


def test_a_report_of_no_step_is_an_error_for_not_all_is_known():
    with pytest.raises(InputError, match=r"other.log: belongs to no step") as refused:
        step_keys(failed("lint.log", "other.log"), PIPELINE)
    assert "ask for a full run" in str(refused.value)
