"""The pool alone, with workers that are plain objects."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from staticfire.harness.probe.pool import Pool


class DiedError(Exception):
    pass


class Worker:
    """Answers with the question, or dies of it."""

    made: int = 0

    def __init__(self, log):
        self.log = log
        self.dead = False

    def ask(self, question, limit=None):
        assert not self.dead, "a dead worker was asked"
        if question["die"]:
            raise DiedError(question["number"])
        return {"number": question["number"], "worker": id(self)}

    def kill(self):
        self.dead = True
        self.log.append(self)


def pool(size=2, patience=3):
    killed, made = [], []

    def make():
        made.append(Worker(killed))
        return made[-1]

    return Pool(make, DiedError, size=size, patience=patience), made, killed


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=150), st.integers(1, 3))
def test_every_question_has_its_own_answer_in_its_place(cases, size):
    one, made, killed = pool(size)
    questions = [{"number": index, "die": die} for index, (die, _) in enumerate(cases)]
    answers = one.ask(questions, [group for _, group in cases])
    for index, (question, answer) in enumerate(zip(questions, answers, strict=True)):
        if question["die"]:
            assert isinstance(answer, DiedError)
            assert answer.args == (index,)
        else:
            assert answer["number"] == index
    assert len(killed) == sum(die for die, _ in cases)
    one.close()
    assert all(worker.dead for worker in made)


def test_few_questions_start_one_worker_and_many_start_two():
    for count, expected in ((5, 1), (400, 2)):
        one, made, _ = pool()
        barrier = threading.Barrier(expected)
        seen = set()

        def slow(self, question, limit=None, barrier=barrier, seen=seen):
            if id(self) not in seen:
                seen.add(id(self))
                barrier.wait(timeout=30)
            return {"number": question["number"]}

        original, Worker.ask = Worker.ask, slow
        try:
            one.ask([{"number": index, "die": False} for index in range(count)], ["same"] * count)
        finally:
            Worker.ask = original
        assert len(made) == expected


def test_workers_are_kept_between_calls():
    one, made, _ = pool(size=1)
    for _ in range(3):
        one.ask([{"number": 0, "die": False}], ["a"])
    assert len(made) == 1


def test_a_worker_keeps_to_a_group():
    one, _, _ = pool(size=1)
    order = []
    original, Worker.ask = Worker.ask, lambda self, question, limit=None: order.append(question["group"]) or {}
    try:
        groups = ["a", "b"] * 20
        one.ask([{"group": group} for group in groups], groups)
    finally:
        Worker.ask = original
    assert order == sorted(order)


def test_starts_that_fail_in_a_row_are_not_tried_for_ever():
    tries = []

    def make():
        tries.append(1)
        raise DiedError("no memory")

    one = Pool(make, DiedError, size=1, patience=3)
    answers = one.ask([{"number": index} for index in range(10)], ["a"] * 10)
    assert len(tries) == 3
    assert str(answers[0]) == "no memory"
    assert str(answers[-1]) == "the engine could not be started 3 times in a row: no memory"


def test_a_fault_of_our_own_stops_everything_and_comes_out():
    one, _, _ = pool()
    original, Worker.ask = Worker.ask, lambda self, question, limit=None: question["missing"]
    try:
        with pytest.raises(KeyError):
            one.ask([{"number": index} for index in range(200)], list(range(200)))
    finally:
        Worker.ask = original


def test_close_while_asking_ends_it():
    killed = []

    class Slow(Worker):
        def ask(self, question, limit=None):
            while not self.dead:
                time.sleep(0.01)
            raise DiedError("killed")

    one = Pool(lambda: Slow(killed), DiedError, size=2)
    answers = []
    asking = threading.Thread(
        target=lambda: answers.extend(one.ask([{"number": index} for index in range(200)], ["a"] * 200))
    )
    asking.start()
    while not one._running:
        time.sleep(0.01)
    one.close()
    asking.join(timeout=30)
    assert not asking.is_alive()
    assert all(isinstance(answer, DiedError) for answer in answers)
