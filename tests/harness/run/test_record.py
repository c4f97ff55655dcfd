import pytest

from staticfire.harness.run.record import RunRecord, duration, rerun_command, summary_line
from staticfire.harness.run.result import CellResult, Verdict


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.0s"), (8.44, "8.4s"), (59.96, "1m00s"), (161.2, "2m41s"), (3599.6, "1h00m"), (3720, "1h02m")],
)  # fmt: skip
def test_durations_read_well(seconds, text):
    assert duration(seconds) == text


@pytest.fixture
def record(identity):
    verdicts: list[Verdict] = ["passed", "failed", "refused as expected", "passed"]
    results = [CellResult(id=f"c{n}", axes={}, verdict=v, seconds=1.0) for n, v in enumerate(verdicts)]
    return RunRecord(
        file="my matrix.toml", identity=identity, started="", seconds=161.2, selected=4, axes=[], results=results
    )


def test_the_summary_counts_every_verdict(record):
    assert sum(record.summary.values()) == 4
    assert record.summary["passed"] == 2
    assert record.summary["error"] == 0
    assert [result.id for result in record.findings] == ["c1"]


def test_the_last_line_sums_up(record):
    assert (
        summary_line(record, "staticfire-report/")
        == "4 cells: 2 passed, 1 refused as expected, 1 failed in 2m41s - report in staticfire-report/"
    )


def test_an_unfinished_run_says_so(identity):
    record = RunRecord(file="m", identity=identity, started="", seconds=1, selected=9, axes=[], results=[])
    assert not record.complete
    assert summary_line(record, "out/") == "0 of 9 cells: no verdicts in 1.0s - report in out/"


def test_the_rerun_command_is_quoted_for_a_shell():
    assert rerun_command("my matrix.toml", "a;rm") == "staticfire run 'my matrix.toml' --cell 'a;rm'"
