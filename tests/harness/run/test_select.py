import pytest

from staticfire.harness.errors import InputError
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.errors import RunUsageError
from staticfire.harness.run.select import select

CELLS = tuple(
    Cell(f"{model}-{size}", {"model": model, "block_size": size}, "valid")
    for model in ("jamba-tiny", "llama-tiny")
    for size in (16, 32)
)


class Matrix:
    def cells(self):
        return CELLS

    def select(self, conditions):
        for axis, value in conditions:
            if axis not in CELLS[0].axes:
                raise InputError(f"no axis {axis!r}")
            assert value
        return tuple(c for c in CELLS if all(str(c.axes[axis]) == value for axis, value in conditions))


def chosen(ids=(), filters=()):
    return [cell.id for cell in select(Matrix(), ids, filters)]


def test_nothing_asked_keeps_everything():
    assert chosen() == [cell.id for cell in CELLS]


def test_ids_come_in_the_order_of_the_matrix_once():
    assert chosen(["llama-tiny-16", "jamba-tiny-32", "jamba-tiny-32"]) == ["jamba-tiny-32", "llama-tiny-16"]


def test_ids_and_values_must_both_match():
    assert chosen(["llama-tiny-16", "jamba-tiny-32"], ["block_size=16"]) == ["llama-tiny-16"]


def test_faults_come_at_once_with_the_nearest_name():
    with pytest.raises(RunUsageError) as error:
        chosen(["jamba-tinny-16"], ["blocksize=16", "model", "=x"])
    assert str(error.value).splitlines() == [
        "--cell jamba-tinny-16: no such cell. Did you mean 'jamba-tiny-16'?",
        "--select model: must be axis=value, such as block_size=32",
        "--select =x: must be axis=value, such as block_size=32",
        "--select: no axis 'blocksize'",
    ]


def test_a_choice_that_leaves_nothing_is_refused():
    with pytest.raises(RunUsageError, match="no cell of the 4 in the matrix is left by --cell jamba-tiny-16 --select"):
        chosen(["jamba-tiny-16"], ["block_size=32"])
