"""Under xdist: equal results, models together, the dead named, set-ups shared."""

import json
from types import SimpleNamespace
from typing import cast

import pytest

from staticfire.harness.plugin.workers.controller import ControllerPlugin
from staticfire.harness.plugin.workers.journal import WorkerJournal, last_event
from staticfire.harness.plugin.workers.shared import SharedSetups, leave, left

CELLS = """
    import os
    import pytest

    @pytest.mark.matrix("toy.toml", verdict="valid")
    def test_cell(cell, record_property):
        record_property("worker", os.environ.get("PYTEST_XDIST_WORKER", "main"))
        assert cell.id != "llama-tiny-b32"

    @pytest.mark.parametrize("n", range(4))
    def test_other(n):
        assert True
"""


@pytest.mark.parametrize("how", ["load", "loadgroup", "worksteal"])
def test_results_and_ids_are_those_of_a_serial_run(suite, how):
    suite.write("test_it.py", CELLS)
    serial = suite.run("--sf-guards=ids")
    spread = suite.run("-n", "2", "--dist", how)
    assert spread.outcomes == serial.outcomes
    assert serial.count("failed") == 1
    if how == "loadgroup":
        workers: dict[str, set[str]] = {}
        for properties in spread.properties.values():
            if "model" in properties:
                workers.setdefault(properties["model"], set()).add(properties["worker"])
        assert {model: len(found) for model, found in workers.items()} == {"jamba-tiny": 1, "llama-tiny": 1}


DEATHS = """
    import os, signal, threading, time
    import pytest

    def test_first(): ...

    {how}

    def test_later(): ...
    def test_last(): ...
"""


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (
            "def test_dies(): os.kill(os.getpid(), signal.SIGKILL)",
            "was killed by SIGKILL in the call of test_it.py::test_dies",
        ),
        ("def test_dies(): os._exit(3)", "exited with code 3 in the call of test_it.py::test_dies"),
        (
            "@pytest.fixture\n    def end():\n        yield\n        os._exit(4)\n    def test_dies(end): ...",
            "exited with code 4 in the teardown of test_it.py::test_dies",
        ),
    ],
    ids=["killed", "exits", "teardown"],
)
def test_a_dead_worker_names_the_test_it_died_on(suite, how, words):
    suite.write("test_it.py", DEATHS.format(how=how))
    run = suite.run("-n", "1")
    assert run.code == 1
    assert words in run.text
    others = {name: outcome for name, outcome in run.outcomes.items() if "dies" not in name}
    assert others == {f"test_it::test_{name}": "passed" for name in ("first", "later", "last")}


def test_a_worker_that_dies_right_after_a_test_blames_that_test(suite):
    suite.write(
        "conftest.py",
        """
        import os, pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_protocol(item):
            answer = yield
            if "dies" in item.nodeid:
                os._exit(5)
            return answer
        """,
    )
    suite.write("test_it.py", DEATHS.format(how="def test_dies(): ..."))
    run = suite.run("-n", "1")
    assert run.code == 1
    assert "exited with code 5 in the teardown of test_it.py::test_dies" in run.text


class Hooks:
    """Takes the place of pytest's configuration; keeps the reports."""

    def __init__(self):
        self.reports = []
        self.hook = self

    def pytest_runtest_logreport(self, report):
        self.reports.append(report)


class Node:
    """A worker without a process."""

    gateway = SimpleNamespace(id="gw0")


def test_a_worker_that_dies_between_tests_blames_what_ran_and_not_what_is_next():
    hooks = Hooks()
    controller = ControllerPlugin(cast("pytest.Config", hooks))
    journal = WorkerJournal(controller.folder, "gw0")
    journal.note("test_ran", "started")
    journal.note("test_ran", "finished")
    victim = pytest.TestReport("test_next", ("x.py", None, "x"), {}, "failed", "xdist's words", "call")
    controller.pytest_testnodedown(Node(), "Not properly terminated")
    controller.pytest_handlecrashitem("test_next", victim)
    assert str(victim.longrepr).startswith("not run: worker 'gw0' died before it began, after test_ran had finished")
    assert [(report.nodeid, report.outcome) for report in hooks.reports] == [("test_ran", "failed")]
    controller.pytest_unconfigure()
    journal.close()


def test_the_death_of_a_cell_has_its_tags_and_its_command():
    controller = ControllerPlugin(cast("pytest.Config", Hooks()))
    journal = WorkerJournal(controller.folder, "gw0")
    journal.note("test_x.py::test_cell[a]", "started", {"tags": {"cell": "a"}, "file": "m.toml", "cell": "a"})
    journal.note("test_x.py::test_cell[a]", "call")
    report = pytest.TestReport("test_x.py::test_next", ("test_x.py", None, "x"), {}, "failed", "xdist's words", "call")
    controller.pytest_testnodedown(Node(), "Not properly terminated")
    controller.pytest_handlecrashitem("test_x.py::test_next", report)
    assert report.head_line == "test_cell[a]"
    assert report.user_properties == [("cell", "a")]
    assert report.sections == [("reproduce", "staticfire run m.toml --cell a")]
    controller.pytest_unconfigure()
    journal.close()


def test_a_file_that_kills_its_worker_is_named(suite):
    suite.write(
        "test_it.py", "import os\nif 'PYTEST_XDIST_WORKER' in os.environ:\n    os._exit(3)\ndef test_it(): ...\n"
    )
    run = suite.run("-n", "1", "--max-worker-restart=0")
    assert run.code == 1
    assert "worker gw0 exited with code 3, last seen in test_it.py (collection); no test answers for it" in run.text


def test_a_worker_that_dies_when_its_tests_have_passed_fails_the_run(suite):
    suite.write(
        "conftest.py",
        """
        import os

        def pytest_sessionfinish(session):
            if hasattr(session.config, "workerinput"):
                os._exit(9)
        """,
    )
    suite.write("test_it.py", "def test_it(): ...\n")
    run = suite.run("-n", "1", "--max-worker-restart=0")
    assert run.outcomes == {"test_it::test_it": "passed"}
    assert run.code == 1
    assert "worker gw0 exited with code 9, last seen in test_it.py::test_it (finished); no test answers" in run.text


def test_a_death_that_a_rerun_mends_fails_nothing(suite):
    suite.write(
        "test_it.py",
        """
        import os, pathlib

        def test_it():
            tried = pathlib.Path("tried")
            if not tried.exists():
                tried.touch()
                os._exit(3)
        """,
    )
    run = suite.run("-n", "1", "--dist=loadgroup", "--reruns=1")
    assert run.code == 0, run.text
    assert "1 passed, 1 rerun" in run.text


def test_the_founding_test_of_b070_ends(suite):
    """The last test of all exits hard: the run ends, red, and says which."""
    suite.write("test_it.py", "import os\ndef test_a(): ...\ndef test_b():\n    os._exit(1)\n")
    run = suite.run("-n", "2")
    assert run.code == 1
    assert "exited with code 1 in the call of test_it.py::test_b" in run.text


def test_a_journal_is_read_up_to_its_torn_line(tmp_path):
    journal = WorkerJournal(tmp_path, "gw0")
    journal.note("test_a", "started")
    journal.note("test_a", "call")
    with (tmp_path / "gw0.events.jsonl").open("a") as file:
        file.write('{"test": "te')
    last = last_event(tmp_path, "gw0")
    assert last is not None
    assert (last.test, last.phase) == ("test_a", "call")
    assert last_event(tmp_path, "gw1") is None
    journal.close()


SHARED = """
    import pytest

    def start():
        with open("log", "a") as log:
            log.write("start\\n")
        return {"port": 1}

    def stop(value):
        with open("log", "a") as log:
            log.write(f"stop {value['port']}\\n")

    @pytest.fixture(scope="session")
    def server(shared_setup):
        return shared_setup("server", start, stop)

    @pytest.mark.parametrize("n", range(6))
    def test_it(server, n):
        with open("log", "a") as log:
            log.write("use\\n")
        assert server == {"port": 1}

    def test_without(): ...
"""


@pytest.mark.parametrize("workers", [(), ("-n", "3")], ids=["serial", "three"])
def test_a_shared_setup_starts_once_and_stops_after_the_last_user(suite, workers):
    suite.write("test_it.py", SHARED)
    run = suite.run(*workers)
    assert run.code == 0, run.text
    log = (suite.folder / "log").read_text().splitlines()
    assert log == ["start", *["use"] * 6, "stop 1"]


def test_whoever_asked_last_waits_for_those_that_still_may(tmp_path):
    """Three workers in one process, step by step: the asker ends while another still runs."""
    import threading

    log: list[object] = []
    asker, other = SharedSetups(tmp_path, "gw0"), SharedSetups(tmp_path, "gw1")
    assert asker.get("x", lambda: 1, lambda _: log.append("stop asker")) == 1
    ending = threading.Thread(target=asker.finish)
    ending.start()
    assert other.get("x", lambda: 2, lambda _: log.append("stop other")) == 1
    ending.join(5)
    assert not ending.is_alive()
    assert log == []
    other.finish()
    assert log == ["stop other"]
    assert left(tmp_path) == []


def test_the_dead_are_taken_out(tmp_path):
    log: list[object] = []
    setups = SharedSetups(tmp_path, "gw0")
    SharedSetups(tmp_path, "gw1")
    setups.get("x", lambda: None, lambda _: log.append("stop"))
    leave(tmp_path, "gw1")
    setups.finish()
    assert log == ["stop"]


def test_a_process_that_shares_with_nobody_leaves_no_folder():
    setups = SharedSetups.alone()
    setups.get("x", lambda: 1, lambda _: None)
    setups.finish()
    assert not setups.folder.exists()


def test_what_no_other_process_can_be_given_is_refused_and_stopped(tmp_path):
    log: list[object] = []
    with pytest.raises(TypeError, match="other processes cannot be given"):
        SharedSetups(tmp_path, "gw0").get("x", object, log.append)
    assert len(log) == 1
    assert json.loads((tmp_path / "shared.json").read_text())["values"] == {}


@pytest.mark.parametrize("workers", [(), ("-n", "2", "--dist", "loadgroup")], ids=["serial", "xdist"])
def test_three_shards_are_the_whole(suite, workers):
    suite.write("test_it.py", CELLS)
    whole = suite.run()
    (suite.folder / "junit.xml").rename(suite.folder / "durations.xml")
    parts = [suite.run("--sf-shard", f"{k}/3", "--sf-durations=durations.xml", *workers) for k in (1, 2, 3)]
    merged = {name: outcome for part in parts for name, outcome in part.outcomes.items()}
    assert merged == whole.outcomes
    assert sum(len(part.outcomes) for part in parts) == len(whole.outcomes)
    assert all(part.outcomes for part in parts)
    assert "shard 1 of 3" in parts[0].text


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["serial", "xdist"])
def test_a_shard_too_many_is_empty_and_green(suite, workers):
    suite.write("test_it.py", "def test_it(): ...\n")
    runs = [suite.run("--sf-shard", f"{k}/2", *workers) for k in (1, 2)]
    assert [(run.code, len(run.outcomes)) for run in runs] == [(0, 1), (0, 0)]


def test_durations_that_cannot_be_read_are_a_usage_error(suite):
    suite.write("test_it.py", "def test_it(): ...\n")
    run = suite.run("--sf-shard=1/2", "--sf-durations=none.xml")
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "--sf-durations: " in run.text
    assert "none.xml" in run.text
    suite.write("durations.xml", "<testsuites/>")
    apart = suite.run("--sf-shard=1/2", "--sf-durations", "durations.xml")
    assert apart.code == pytest.ExitCode.USAGE_ERROR, "pytest looks for its root beside such a path"
    assert "write --sf-durations=durations.xml" in apart.text


def test_a_test_that_kills_its_worker_is_not_given_to_the_next_one(suite):
    suite.write("test_it.py", DEATHS.format(how="def test_dies(): os._exit(3)"))
    run = suite.run("-n", "2", "--dist=loadgroup")
    assert run.code == 1
    assert run.text.count("replacing crashed worker") == 1
    assert run.outcomes == {f"test_it::test_{name}": "passed" for name in ("first", "later", "last")} | {
        name: outcome for name, outcome in run.outcomes.items() if "dies" in name
    }
    assert any("dies" in name for name in run.outcomes)
