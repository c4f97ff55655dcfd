import os
import signal
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run import supervisor
from staticfire.harness.run.errors import Interrupted, RunAbortedError
from staticfire.harness.run.signals import StopSignals
from staticfire.harness.run.supervisor import Supervisor
from waiting import soon_gone


@pytest.fixture(autouse=True)
def _no_process_left():
    before = {p.pid for p in psutil.Process().children(recursive=True)}  # such as multiprocessing's resource tracker
    yield
    left = [p for p in psutil.Process().children(recursive=True) if p.status() != psutil.STATUS_ZOMBIE]
    assert [p for p in left if p.pid not in before] == []


def test_every_cell_gets_the_verdict_of_its_job(supervise, cells_that):
    results = supervise(cells_that("pass", "fail", "refuse:SF101", "pass"))
    assert {name: result.verdict for name, result in results.items()} == {
        "c0": "passed",
        "c1": "failed",
        "c2": "refused as expected",
        "c3": "passed",
    }
    assert results["c2"].rule == "SF101"
    assert results["c1"].detail["first_difference"] == {"position": 3, "got": 7}
    assert results["c0"].axes == {"model": "m", "do": "pass"}


def test_no_cells_need_no_worker(supervise, story):
    assert supervise([]) == {}
    assert story.events == []


@pytest.mark.parametrize(
    ("action", "exit_text", "words"),
    [
        ("leave:3", "exit code 3", "last words"),
        ("leave:0", "exit code 0", "last words"),
        ("kill:SIGKILL", "killed by SIGKILL", ""),
        ("kill:SIGTERM", "killed by SIGTERM", ""),
        ("crash", "killed by SIGSEGV", "Segmentation fault"),
    ],
)
def test_a_dead_worker_is_an_error_of_its_cell_and_is_replaced(supervise, cells_that, action, exit_text, words):
    results = supervise(cells_that("pass", action, "pass", "pass"), workers=1)
    assert [results[f"c{n}"].verdict for n in range(4)] == ["passed", "error", "passed", "passed"]
    detail = results["c1"].detail
    assert detail["exit"] == exit_text
    assert exit_text in detail["error"]
    assert detail["ran_before"] == ["c0"]
    assert words in detail["output"]


def test_a_worker_that_dies_between_two_cells_harms_neither(supervise, cells_that, fake_log):
    results = supervise(cells_that(*["die_when_idle", "pass"] * 5), workers=1)
    assert [(r.id, r.verdict, r.detail) for r in results.values() if r.verdict != "passed"] == []
    assert len(results) == 10
    assert len(fake_log.read_text().splitlines()) == 10, "each ran once"


def test_a_worker_that_dies_on_the_last_cell_ends_the_run(supervise, cells_that):
    results = supervise(cells_that("leave:1"), workers=2)
    assert results["c0"].verdict == "error"


def test_every_cell_may_kill_its_worker(supervise, cells_that):
    results = supervise(cells_that(*["kill:SIGKILL"] * 6), workers=2)
    assert [result.verdict for result in results.values()] == ["error"] * 6


@pytest.mark.parametrize("action", ["wait:60", "hold", "family"])
def test_a_hang_is_an_error_with_the_stack(supervise, cells_that, action):
    results = supervise(cells_that(action, "pass"), workers=1, timeout=1.0)
    assert results["c1"].verdict == "passed"
    assert results["c0"].verdict == "error"
    assert results["c0"].detail["timed_out"] is True
    assert "no verdict within 1 s" in results["c0"].detail["error"]
    assert "fake_jobs.py" in results["c0"].detail["output"]


def test_a_stopped_worker_is_an_error_too(supervise, cells_that):
    results = supervise(cells_that("kill:SIGSTOP", "pass"), workers=1, timeout=1.0)
    assert [results["c0"].verdict, results["c1"].verdict] == ["error", "passed"]


def test_processes_that_a_cell_started_die_with_it(supervise, cells_that, fake_log):
    supervise(cells_that("family"), workers=1, timeout=1.0)
    child = int(fake_log.read_text().split("child ")[1])
    assert soon_gone(child)


@pytest.mark.parametrize("name", ["value", "exit", "interrupt"])
def test_what_a_job_raises_is_an_error_with_its_traceback(supervise, cells_that, name, fake_log):
    results = supervise(cells_that(f"throw:{name}", "pass"), workers=1)
    assert results["c0"].verdict == "error"
    assert "thrown on purpose" in results["c0"].detail["error"]
    assert "fake_jobs.py" in results["c0"].detail["traceback"]
    pids = {line.split()[-1] for line in fake_log.read_text().splitlines()}
    assert len(pids) == 1, "the worker need not be replaced"


@pytest.mark.parametrize("action", ["nothing", "bogus"])
def test_a_job_that_returns_nonsense_is_an_error(supervise, cells_that, action):
    result = supervise(cells_that(action))["c0"]
    assert result.verdict == "error"
    assert "the job returned" in result.detail["error"]


def test_a_corrupt_message_is_an_error(supervise, cells_that):
    results = supervise(cells_that("garbage", "pass"), workers=1)
    assert [results["c0"].verdict, results["c1"].verdict] == ["error", "passed"]
    assert "no message" in results["c0"].detail["message"]


def test_a_worker_that_closes_its_pipes_is_an_error(supervise, cells_that):
    results = supervise(cells_that("close", "pass"), workers=1)
    assert [results["c0"].verdict, results["c1"].verdict] == ["error", "passed"]


def test_details_arrive_as_plain_values(supervise, cells_that):
    results = supervise(cells_that("odd", "huge"))
    assert results["c0"].detail == {"nan": "nan", "bytes": "b'\\xff'", "lone": "?", "(1, 2)": [3]}
    assert "left out" in results["c1"].detail["note"]


def test_a_talkative_job_neither_blocks_nor_fills_memory(supervise, cells_that):
    results = supervise(cells_that("chatter:50000", "pass"))
    assert [result.verdict for result in results.values()].count("passed") == 2


def test_workers_get_their_environment_and_ours_is_left_alone(supervise, cells_that):
    before = dict(os.environ)
    detail = supervise(cells_that("environment"), workers=1)["c0"].detail
    assert os.environ == before
    assert int(detail.pop("OMP_NUM_THREADS")) >= 1
    assert int(detail.pop("MKL_NUM_THREADS")) >= 1
    assert detail == {
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONSAFEPATH": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }


def test_cells_of_one_group_stay_on_one_worker(supervise, fake_log):
    cells = [Cell(f"{model}{n}", {"model": model, "do": "wait:0.05"}, "valid") for n in range(6) for model in "ab"]
    supervise(cells, workers=2)
    by_pid: dict[str, list[str]] = {}
    for line in fake_log.read_text().splitlines():
        _, cell, pid = line.split()
        by_pid.setdefault(pid, []).append(cell)
    assert len(by_pid) == 2
    for ran in by_pid.values():
        switches = sum(a[0] != b[0] for a, b in pairwise(ran))
        assert switches <= 1, ran


def test_fail_fast_begins_nothing_after_a_finding(supervise, cells_that):
    results = supervise(cells_that("pass", "fail", "pass", "pass"), workers=1, fail_fast=True)
    assert list(results) == ["c0", "c1"]


def test_a_job_that_cannot_be_imported_aborts_the_run(supervise, cells_that):
    with pytest.raises(RunAbortedError, match="this module cannot be imported"):
        supervise(cells_that("pass"), job="broken_job:do")


def test_a_job_that_does_not_exist_aborts_the_run(supervise, cells_that):
    with pytest.raises(RunAbortedError, match="no function 'nope' in the module 'fake_jobs'"):
        supervise(cells_that("pass"), job="fake_jobs:nope")


def test_workers_that_die_at_their_start_abort_the_run(supervise, cells_that, monkeypatch, make_settings):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(RunAbortedError, match="exit code 1, 3 times in a row"):
        supervise(cells_that("pass"))


def test_a_worker_that_never_starts_aborts_the_run(supervise, cells_that, monkeypatch, tmp_path):
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\ntrap '' USR1\nexec sleep 60\n")
    sleeper.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(sleeper))
    monkeypatch.setattr(supervisor, "START_LIMIT_SECONDS", 0.2)
    monkeypatch.setattr(supervisor, "STACK_DUMP_SECONDS", 0.1)
    with pytest.raises(RunAbortedError, match=r"did not start within 0\.2 s, 3 times"):
        supervise(cells_that("pass"))


def test_a_record_that_fails_ends_the_run_without_orphans(story, make_settings, cells_that):
    def record(_):
        raise OSError(28, "No space left on device")

    with StopSignals() as signals, pytest.raises(OSError, match="No space"):
        Supervisor(make_settings(), record, story, signals).run(cells_that("pass", "wait:60"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_the_run_between_two_events(story, make_settings, cells_that, number, code):
    def started(cell, worker):
        if cell.id == "c1":
            os.kill(os.getpid(), number)

    story.started = started
    before = signal.getsignal(number)
    with StopSignals() as signals, pytest.raises(Interrupted) as stop:
        Supervisor(make_settings(workers=1), story.record, story, signals).run(cells_that("pass", "wait:60"))
    assert stop.value.exit_code == code
    assert list(story.results) == ["c0"]
    assert signal.getsignal(number) is before


def test_a_run_that_waits_does_not_spin(supervise, cells_that, story):
    ticks = []
    story.tick = lambda: ticks.append(1)
    supervise(cells_that("wait:1"), workers=1)
    assert 2 < len(ticks) < 50


def test_workers_are_not_started_for_cells_that_do_not_exist(supervise, cells_that, fake_log):
    supervise(cells_that("wait:0.2", "wait:0.2"), workers=8)
    assert len({line.split()[-1] for line in Path(fake_log).read_text().splitlines()}) == 2


def pool_of(cell):
    return cell.model


POOLS = {"a": {"MODE": "first"}, "b": {"MODE": "second"}, "c": {"MODE": "third"}}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_every_pool_has_workers_of_its_own_environment(supervise, cells_that, workers):
    cells = [
        replace(cell, id=f"{model}{cell.id}")
        for model, count in (("a", 3), ("b", 1), ("c", 2))
        for cell in cells_that(*["variable:MODE"] * count, model=model)
    ]
    results = supervise(cells, workers=workers, pool_of=pool_of, pools=POOLS)
    assert {name: result.detail["value"] for name, result in results.items()} == {
        cell.id: POOLS[cell.model]["MODE"] for cell in cells
    }
    pools = {model: {r.detail["pid"] for name, r in results.items() if name[0] == model} for model in POOLS}
    assert len(set.union(*pools.values())) == sum(map(len, pools.values())), "a process served two pools"


def test_a_worker_that_dies_is_replaced_in_its_pool(supervise, cells_that):
    cells = [
        *cells_that("leave:3", "variable:MODE", model="a"),
        replace(cells_that("variable:MODE", model="b")[0], id="d"),
    ]
    results = supervise(cells, workers=1, pool_of=pool_of, pools=POOLS)
    assert results["c0"].verdict == "error"
    assert [results[name].detail["value"] for name in ("c1", "d")] == ["first", "second"]


def test_no_pool_is_begun_after_the_first_finding(supervise, cells_that):
    cells = [*cells_that("fail", model="a"), replace(cells_that("pass", model="b")[0], id="d")]
    assert set(supervise(cells, workers=1, pool_of=pool_of, pools=POOLS, fail_fast=True)) == {"c0"}
