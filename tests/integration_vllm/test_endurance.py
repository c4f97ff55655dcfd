"""Many questions in a row, and processes that are killed under them."""

import os
import signal
import threading

import pytest

from probe_support import processes_of, wait_for
from staticfire.harness.models import devices
from staticfire.harness.probe.base import Accepted, Crashed, Rejected
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.probe.vllm.process import EngineProcess, Limits

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]


def pid_of(probe: VllmProbe) -> int:
    (worker,) = probe._pool._idle
    assert isinstance(worker, EngineProcess)
    return worker.pid


def test_hundreds_of_questions_have_the_answers_that_each_has_alone(open_probe, question):
    probe = open_probe("0.28.0")
    asked = [
        question("jamba-v0.1", max_num_seqs=number % 50 + 1, enable_chunked_prefill=bool(number % 2))
        for number in range(300)
    ]
    outcomes = probe.answer(asked)
    for number, outcome in enumerate(outcomes):
        assert isinstance(outcome, Accepted if number % 2 else Rejected)
    alone = VllmProbe(str(probe.installed.python), devices.find("h100-80gb"), use_cache=False, processes=1)
    try:
        assert alone.answer(asked[100:104]) == outcomes[100:104]
    finally:
        alone.close()


def test_kill_9_in_the_middle_costs_one_answer_and_leaves_nothing(interpreters, question):
    probe = VllmProbe(
        str(interpreters["0.28.0"]), devices.find("h100-80gb"), use_cache=False, processes=1, limits=Limits(600, 300)
    )
    try:
        probe.ask(question("jamba-v0.1"))
        first = pid_of(probe)
        threading.Timer(0.5, os.kill, (first, signal.SIGKILL)).start()
        asked = [question("jamba-v0.1", max_num_seqs=number + 1) for number in range(300)]
        outcomes = probe.answer(asked)
        crashed = [outcome for outcome in outcomes if isinstance(outcome, Crashed)]
        assert len(crashed) == 1
        assert "signal 9" in crashed[0].detail
        assert sum(isinstance(outcome, Accepted) for outcome in outcomes) == 299
        second = pid_of(probe)
        wait_for(lambda: not processes_of(first))
    finally:
        probe.close()
    wait_for(lambda: not processes_of(second))


def test_a_question_that_takes_too_long_is_given_up_on(interpreters, question):
    probe = VllmProbe(
        str(interpreters["0.28.0"]), devices.find("h100-80gb"), use_cache=False, processes=1, limits=Limits(600, 0.05)
    )
    try:
        # The first question of an architecture imports its class, which no machine does in 50 ms.
        outcome = probe.ask(question("qwen3.6-35b-a3b"))
        assert isinstance(outcome, Crashed)
        assert not outcome.lasting
        assert "no answer within 0.05 s" in outcome.detail
        assert not probe._pool._idle
    finally:
        probe.close()
