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
    """Answers with the question, or dies of it; `act` may do so in another way."""

    def __init__(self, killed, act=None):
        self.killed = killed
        self.act = act
        self.dead = False

    def ask(self, question, limit=None):
        assert not self.dead, "a dead worker was asked"
        if self.act is not None:
            return self.act(self, question)
        if question["die"]:
            raise DiedError(question["number"])
        return {"number": question["number"]}

    def kill(self):
        self.dead = True
        self.killed.append(self)


def pool(size=2, act=None):
    killed: list[Worker] = []
    made: list[Worker] = []

    def make():
        made.append(Worker(killed, act))
        return made[-1]

    return Pool(make, DiedError, size=size, patience=3), made, killed


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
            assert answer == {"number": index}
    assert len(killed) == sum(die for die, _ in cases)
    one.close()
    assert all(worker.dead for worker in made)


@pytest.mark.parametrize(("count", "expected"), [(5, 1), (400, 2)])
def test_few_questions_start_one_worker_and_many_start_two(count, expected):
    barrier = threading.Barrier(expected)
    seen: set[Worker] = set()

    def wait_for_the_others(worker, question):
        if worker not in seen:
            seen.add(worker)
            barrier.wait(timeout=30)
        return {}

    one, made, _ = pool(act=wait_for_the_others)
    one.ask([{}] * count, ["same"] * count)
    assert len(made) == expected


def test_workers_are_kept_between_calls():
    one, made, _ = pool(size=1)
    for _ in range(3):
        one.ask([{"number": 0, "die": False}], ["a"])
    assert len(made) == 1


def test_a_worker_keeps_to_a_group():
    order: list[str] = []

    def note(worker, question):
        order.append(question["group"])
        return {}

    one, _, _ = pool(size=1, act=note)
    groups = ["a", "b"] * 20
    one.ask([{"group": group} for group in groups], groups)
    assert order == sorted(groups)


def test_starts_that_fail_in_a_row_are_not_tried_for_ever():
    tries: list[int] = []

    def make():
        tries.append(1)
        raise DiedError("no memory")

    one = Pool(make, DiedError, size=1, patience=3)
    answers = one.ask([{"number": index} for index in range(10)], ["a"] * 10)
    assert len(tries) == 3
    assert str(answers[0]) == "no memory"
    assert str(answers[-1]) == "the engine could not be started 3 times in a row: no memory"


class SlowError(DiedError):
    slow = True


def test_two_slow_questions_about_one_model_spare_the_rest_of_it_and_no_other():
    asked: list[str] = []

    def act(worker, question):
        asked.append(question["model"])
        if question["model"] == "slow":
            raise SlowError("no answer within 60 s")
        return {}

    one, _, _ = pool(size=1, act=act)
    models = ["slow"] * 9 + ["quick"] * 3
    answers = one.ask([{"model": name} for name in models], models)
    assert asked == ["slow", "slow", "quick", "quick", "quick"]
    assert [str(answer) for answer in answers[2:9]] == ["not asked: 2 questions about the same model took too long"] * 7
    assert answers[9:] == [{}] * 3


def test_a_fault_of_our_own_stops_everything_and_comes_out():
    one, _, _ = pool(act=lambda worker, question: question["missing"])
    with pytest.raises(KeyError):
        one.ask([{}] * 200, list(range(200)))


def test_close_while_asking_ends_it():
    def hang(worker, question):
        while not worker.dead:
            time.sleep(0.01)
        raise DiedError("killed")

    one, made, _ = pool(act=hang)
    answers: list[object] = []
    asking = threading.Thread(target=lambda: answers.extend(one.ask([{}] * 200, ["a"] * 200)))
    asking.start()
    while not one._running:
        time.sleep(0.01)
    one.close()
    asking.join(timeout=30)
    assert not asking.is_alive()
    assert len(answers) == 200
    assert all(isinstance(answer, DiedError) for answer in answers)
    assert all(worker.dead for worker in made)


def test_a_worker_whose_answer_is_its_last_is_ended_and_not_asked_again():
    one, made, killed = pool(1, lambda _, question: {"number": question["number"], "last": question["die"]})
    questions = [{"number": number, "die": number == 1} for number in range(4)]
    assert [answer["number"] for answer in one.ask(questions, ["model"] * 4)] == [0, 1, 2, 3]
    assert (len(made), killed) == (2, made[:1])
    one.close()
