import pytest

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.backends import BACKENDS, backend_of, with_backend
from staticfire.harness.run.errors import RunUsageError
from staticfire.harness.run.record import rerun_command

PLAIN = Cell("c", {"model": "m", "block_size": 16}, "valid", fixed={"seed": 1})
TYPED = Cell("t", {"model": "m", "kernel_backend": "triton"}, "valid")


def test_a_cell_is_for_the_backend_that_its_engine_has():
    assert [backend_of(cell) for cell in (PLAIN, TYPED)] == ["torch", "triton"]
    unset = Cell("u", {"model": "m", "kernel_backend": "unset"}, "valid")
    assert backend_of(unset) == "torch"


def test_cells_are_moved_without_another_name():
    (moved,) = with_backend([PLAIN], "triton")
    assert moved.id == PLAIN.id
    assert moved.axes == PLAIN.axes
    assert moved.config == {"seed": 1, "block_size": 16, "kernel_backend": "triton"}
    assert backend_of(moved) == "triton"
    assert with_backend([PLAIN], None) == (PLAIN,)


def test_an_axis_is_not_overridden():
    with pytest.raises(RunUsageError, match="say --select kernel_backend=torch"):
        with_backend([PLAIN, TYPED], "torch")


def test_triton_alone_needs_variables():
    assert BACKENDS["torch"] == {}
    assert BACKENDS["triton"] == {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": "1"}


def test_the_rerun_command_names_the_backend():
    assert rerun_command("m.toml", "c", "triton") == "staticfire run m.toml --cell c --kernel-backend triton"
