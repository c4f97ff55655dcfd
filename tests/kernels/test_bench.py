import pytest

from staticfire.kernels import bench
from staticfire.kernels.tolerances import TOLERANCES

pytestmark = pytest.mark.engine


def test_every_op_has_a_line():
    assert {case.op for case in bench.cases()} == {op for op, _ in TOLERANCES}


def test_a_wrong_path_gets_no_number():
    case = next(case for case in bench.cases() if case.op == "rms_norm")
    wrong = case._replace(call=lambda backend: case.call(backend) * (2 if backend == "torch" else 1))
    with pytest.raises(AssertionError, match="rms_norm: max error"):
        bench.measure(wrong)


def test_the_table_has_a_row_per_case(capsys):
    assert bench.main(["reshape_and_cache", "silu_and_mul"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["op", "shape", "torch", "us", "reference", "us", "ratio"]
    assert [row.split()[0] for row in rows] == ["silu_and_mul", "reshape_and_cache"]
    assert all(float(row.split()[-3]) > 0 for row in rows)


def test_an_unknown_op_names_the_nearest(capsys):
    with pytest.raises(SystemExit) as caught:
        bench.main(["rms_nom"])
    assert caught.value.code == 2
    assert "did you mean 'rms_norm'?" in capsys.readouterr().err
