import dataclasses
import errno
import os

import msgspec
import pytest

from staticfire.harness.run import journal as journals
from staticfire.harness.run.errors import RunAbortedError, RunUsageError
from staticfire.harness.run.folder import RunFolder
from staticfire.harness.run.runner import RunRequest, run


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


@pytest.fixture
def request_for(identity, make_settings, out):
    def make(cells, **changes):
        settings = changes.pop("settings", None) or make_settings(workers=1)
        request = RunRequest(
            file="m.toml",
            identity=identity,
            cells=cells,
            everything=cells,
            selective=False,
            out=out,
            resume=False,
            reports=["results.json"],
            settings=settings,
        )
        return dataclasses.replace(request, **changes)

    return make


@pytest.fixture
def go(story, out):
    def run_it(request):
        story.results.clear()
        published: list[object] = []
        story.finished = lambda result: story.events.append(("finished", result.id, result.verdict))
        record = run(request, story, published.append)
        assert published == [record]
        return record

    return run_it


def starts(fake_log):
    return [line.split()[1] for line in fake_log.read_text().splitlines()]


def test_results_come_in_the_order_of_the_matrix(go, request_for, cells_that, out):
    cells = cells_that("wait:0.3", "pass", "fail", "pass")
    record = go(request_for(cells, settings=None))
    assert [result.id for result in record.results] == ["c0", "c1", "c2", "c3"]
    assert record.complete
    assert record.axes == ["model", "do"]
    assert [r.id for r in journals.read(out / "journal.jsonl").results].count("c0") == 1


def test_resume_runs_only_what_has_no_verdict(go, request_for, cells_that, make_settings, fake_log, story):
    cells = cells_that("pass", "fail", "pass", "pass")
    first = go(request_for(cells, settings=make_settings(workers=1, fail_fast=True)))
    assert [result.id for result in first.results] == ["c0", "c1"]
    assert not first.complete
    second = go(request_for(cells, resume=True))
    assert second.complete
    assert second.started == first.started
    assert starts(fake_log) == ["c0", "c1", "c2", "c3"]
    assert ("opened", 2, 2, None) in story.events


def test_resume_of_a_finished_run_runs_nothing_and_reports_again(go, request_for, cells_that, fake_log):
    cells = cells_that("pass", "pass")
    go(request_for(cells))
    record = go(request_for(cells, resume=True))
    assert [result.verdict for result in record.results] == ["passed", "passed"]
    assert starts(fake_log) == ["c0", "c1"]


def test_resume_without_a_journal_starts(go, request_for, cells_that):
    assert go(request_for(cells_that("pass"), resume=True)).complete


def test_a_new_run_keeps_the_earlier_one(go, request_for, cells_that, out, story, fake_log):
    cells = cells_that("pass")
    go(request_for(cells))
    (out / "results.json").write_text("first")
    go(request_for(cells))
    assert ("opened", 1, 0, out / "earlier" / "0001") in story.events
    assert (out / "earlier" / "0001" / "results.json").read_text() == "first"
    assert [r.id for r in journals.read(out / "earlier" / "0001" / "journal.jsonl").results] == ["c0"]
    assert starts(fake_log) == ["c0", "c0"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"digest": "e" * 64}, "matrix digest: dddddddddddd, now eeeeeeeeeeee"),
        ({"job": "other:job"}, "job: j:j, now other:job"),
        ({"content": "f" * 64}, "content of the package: cccccccccccc, now ffffffffffff"),
        ({"versions": {"staticfire": "0.2.0"}}, "staticfire: 0.1.0, now 0.2.0"),
    ],
)
def test_another_matrix_or_version_is_not_resumed(go, request_for, cells_that, identity, out, changes, message):
    cells = cells_that("pass")
    go(request_for(cells))
    before = (out / "journal.jsonl").read_bytes()
    with pytest.raises(RunUsageError, match="run without --resume to start afresh") as error:
        go(request_for(cells, resume=True, identity=msgspec.structs.replace(identity, **changes)))
    assert message in str(error.value)
    assert (out / "journal.jsonl").read_bytes() == before


def test_resume_takes_the_selection_of_the_journal(go, request_for, cells_that):
    cells = cells_that("pass", "pass", "pass")
    go(request_for(cells[:2], everything=cells, selective=True))
    assert [r.id for r in go(request_for(cells, resume=True)).results] == ["c0", "c1"]
    go(request_for(cells[:2], everything=cells, selective=True, resume=True))
    with pytest.raises(RunUsageError, match="of another selection of 2 cells"):
        go(request_for(cells[1:], everything=cells, selective=True, resume=True))


def test_a_journal_of_unknown_cells_is_not_resumed(go, request_for, cells_that):
    cells = cells_that("pass", "pass")
    go(request_for(cells))
    with pytest.raises(RunUsageError, match="names the unknown cell 'c1'"):
        go(request_for(cells[:1], resume=True))


def test_a_full_disk_under_the_journal_stops_the_run_and_resume_mends_it(
    go, request_for, cells_that, monkeypatch, fake_log
):
    cells = cells_that("pass", "pass", "pass")
    real = os.fsync

    def full(descriptor):
        if len(starts(fake_log)) == 2 if fake_log.exists() else False:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(RunAbortedError, match="No space left on device; the verdicts before c1 are in it"):
            go(request_for(cells))
    assert go(request_for(cells, resume=True)).complete
    assert starts(fake_log) == ["c0", "c1", "c1", "c2"], "c1 had no verdict yet"


def test_the_folder_is_ours_until_the_reports_are_written(story, request_for, cells_that, out):
    def publish(_):
        with pytest.raises(RunUsageError, match="another run is writing there"):
            RunFolder(out).__enter__()

    story.finished = lambda _: None
    run(request_for(cells_that("pass")), story, publish)
    with RunFolder(out):
        pass
