"""Schedules by group, file and scope outlive their workers: every test runs once, and a killer kills once.

What xdist's session does around a schedule is played here step by step, in an order that Hypothesis draws.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from staticfire.harness.plugin.workers.schedule import make, write

TESTS = [f"test_{file}.py::test_{name}" for file in "ab" for name in "1234"] + ["test_c.py::TestC::test_1"]
GROUPS = {"test_a.py::test_1": "jamba", "test_b.py::test_1": "jamba", "test_b.py::test_2": "jamba"}
HOW = ["loadgroup", "loadfile", "loadscope"]


class Quiet:
    """Takes the place of xdist's log."""

    def __getattr__(self, name: str) -> "Quiet":
        return self

    def __call__(self, *words: object) -> None:
        """Say nothing."""


class Worker:
    """A worker without a process."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.state = "new"
        self.queue: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        """Take tests."""
        self.queue += indices

    def shutdown(self) -> None:
        """Take none any more."""
        self.shutting_down = True

    def action(self) -> str | None:
        """What it can do next; like xdist's, it runs its last test when it knows of another one, or of the end."""
        if self.state in ("new", "ready"):
            return self.state
        if self.queue and (len(self.queue) > 1 or self.shutting_down):
            return "run"
        return "end" if self.shutting_down and not self.queue else None


class Session:
    """What xdist's session does with a schedule."""

    def __init__(self, schedule: Any, killers: set[str], reruns: int) -> None:
        self.schedule = schedule
        self.killers = killers
        self.reruns = reruns
        self.workers = [Worker(0), Worker(1)]
        self.made = 2
        self.ending = False
        self.passed: list[str] = []
        self.killed: list[str] = []

    def step(self, worker: Worker, action: str) -> None:
        """Let one worker do one thing."""
        if action == "new":
            worker.state = "ready"
            if self.ending:
                worker.shutdown()
            else:
                self.schedule.add_node(worker)
        elif action == "ready":
            worker.state = "collected"
            if not self.ending:
                self.schedule.add_node_collection(worker, list(TESTS))
                if self.schedule.collection_is_completed:
                    self.schedule.schedule()
        elif action == "run":
            index = worker.queue.pop(0)
            if TESTS[index] in self.killers:
                self.die(worker, TESTS[index])
            else:
                self.passed.append(TESTS[index])
                self.schedule.mark_test_complete(worker, index)
        else:
            self.workers.remove(worker)
            assert worker not in self.schedule.nodes or self.schedule.remove_node(worker) is None
        if not self.ending and self.schedule.tests_finished:
            self.ending = True
            for node in self.schedule.nodes:
                node.shutdown()

    def die(self, worker: Worker, test: str) -> None:
        """A test kills its worker, and another one takes its place."""
        crashed = self.schedule.remove_node(worker)
        assert crashed == test
        if self.killed.count(test) < self.reruns:
            self.schedule.mark_test_pending(crashed)  # as pytest-rerunfailures does
        self.killed.append(test)
        self.workers.remove(worker)
        self.workers.append(Worker(self.made))
        self.made += 1
        self.ending = False


def schedule(how, folder):
    write(folder, GROUPS, "gw0")
    options = SimpleNamespace(dist=how, tx=["popen"] * 2, loadscopereorder=True)
    config: Any = SimpleNamespace(option=options, getvalue=lambda name: getattr(options, name))
    return make(config, Quiet(), folder)


@settings(max_examples=200)
@given(
    how=st.sampled_from(HOW),
    killers=st.sets(st.sampled_from(TESTS)),
    reruns=st.integers(0, 1),
    data=st.data(),
)
def test_every_test_runs_once_whoever_dies(tmp_path_factory, how, killers, reruns, data):
    session = Session(schedule(how, tmp_path_factory.getbasetemp()), killers, reruns)
    while session.workers:
        able = [(worker, action) for worker in session.workers if (action := worker.action()) is not None]
        assert able, "nobody can go on, and the run hangs"
        session.step(*data.draw(st.sampled_from(able)))
    assert sorted(session.passed) == sorted(set(TESTS) - killers)
    assert sorted(session.killed) == sorted([*killers] * (1 + reruns))


def test_the_cells_of_a_group_go_to_one_worker(tmp_path):
    session = Session(schedule("loadgroup", tmp_path), set(), 0)
    ran: dict[str, str] = {}
    while session.workers:
        for worker in list(session.workers):
            action = worker.action()
            if action == "run":
                ran[TESTS[worker.queue[0]]] = worker.gateway.id
            if action is not None:
                session.step(worker, action)
    assert len({ran[test] for test in GROUPS}) == 1
    assert len(set(ran.values())) == 2


def test_a_replacement_that_collects_other_tests_ends_the_run_and_says_so(tmp_path):
    made = schedule("loadgroup", tmp_path)
    session = Session(made, {TESTS[0]}, 0)
    for action in ("new", "ready"):
        for worker in list(session.workers):
            session.step(worker, action)
    holder = next(worker for worker in session.workers if 0 in worker.queue)
    while holder in session.workers:
        session.step(holder, "run")
    replacement = session.workers[-1]
    session.step(replacement, "new")
    with pytest.raises(pytest.UsageError, match=r"gw2 replaces one that died.*test_new.*--sf-guards ids"):
        made.add_node_collection(replacement, [*TESTS[:-1], "test_c.py::test_new"])


def test_other_schedules_are_left_to_xdist(tmp_path):
    assert schedule("load", tmp_path) is None
    assert schedule("worksteal", tmp_path) is None
