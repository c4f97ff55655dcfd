import pytest

from staticfire.harness.report.progress import Progress


@pytest.fixture
def progress(make_result):
    made = Progress(total=10, began=100.0)
    made.start(1, "a", 100.0)
    made.start(2, "b", 101.0)
    made.finish(make_result("a"))
    made.start(1, "c", 102.0)
    made.finish(make_result("b", "failed"))
    return made


def test_counts_and_what_is_running(progress):
    assert (progress.done, progress.findings) == (2, 1)
    assert progress.running == {1: ("c", 102.0)}


def test_rate_and_time_left_follow_the_clock(progress):
    assert progress.rate(104.0) == pytest.approx(0.5)
    assert progress.seconds_left(104.0) == pytest.approx(16.0)
    assert progress.line(104.0) == "2/10 done, 1 finding, 0.5 cells/s, about 16.0s left"


def test_before_the_first_verdict_nothing_is_promised():
    progress = Progress(total=3, began=5.0)
    assert progress.seconds_left(5.0) is None
    assert progress.rate(5.0) == 0
    assert progress.line(9.0) == "0/3 done, no findings, starting"


def test_at_the_end_nothing_is_left(make_result):
    progress = Progress(total=2, began=0.0)
    for name in "ab":
        progress.finish(make_result(name, "error"))
    assert progress.line(4.0) == "2/2 done, 2 findings, 0.5 cells/s"
