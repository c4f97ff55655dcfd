"""Processes that are killed, hang, leave or lose their client: the others are answered and nothing is left behind."""

import os
import shutil
import signal
import subprocess
import sys
import threading

import pytest

from probe_support import processes_of, wait_for
from staticfire.harness.probe.base import Accepted, Crashed, Question
from staticfire.harness.probe.vllm import process
from staticfire.harness.probe.vllm.process import EngineDiedError, Limits


@pytest.mark.parametrize(
    ("act", "words"),
    [("die", "signal 9"), ("leave", "status 3"), ("hang", "no answer within 2 s")],
)
def test_one_bad_question_costs_only_its_own_answer(probe, model, act, words):
    one = probe(limits=Limits(start=60, question=2), processes=1)
    questions = [Question(model(), {"block_size": 16 * size}) for size in range(1, 7)]
    questions.insert(3, Question(model(), {"act": act}))
    outcomes = one.answer(questions)
    assert [isinstance(outcome, Accepted) for outcome in outcomes] == [True] * 3 + [False] + [True] * 3
    bad = outcomes[3]
    assert isinstance(bad, Crashed)
    assert words in bad.detail
    assert not bad.lasting
    assert one._cache.get([one._key(questions[3])]) == {}


def test_a_process_killed_from_outside_in_the_middle_is_replaced(probe, model):
    one = probe(limits=Limits(start=60, question=30), processes=1)
    one.ask(Question(model()))
    worker = one._pool._idle[0]
    killer = threading.Timer(0.3, os.kill, (worker.pid, signal.SIGKILL))
    killer.start()
    outcomes = one.answer([Question(model(), {"act": "hang"}), Question(model(), {"block_size": 48})])
    killer.join()
    assert isinstance(outcomes[0], Crashed)
    assert "signal 9" in outcomes[0].detail
    assert isinstance(outcomes[1], Accepted)
    assert one._pool._idle[0].pid != worker.pid
    wait_for(lambda: not processes_of(worker.pid))


def test_close_ends_a_hanging_process_and_its_watcher(probe, model):
    one = probe()
    one.ask(Question(model()))
    group = one._pool._idle[0].pid
    assert len(processes_of(group)) == 2  # the engine, and the process that outlives a killed client
    one.close()
    wait_for(lambda: not processes_of(group))


CLIENT = """
import sys, threading
from staticfire.harness.models import devices
from staticfire.harness.probe.base import Question
from staticfire.harness.probe.vllm.probe import VllmProbe

probe = VllmProbe(sys.argv[1], devices.find("h100-80gb"), use_cache=False)
probe.ask(Question(sys.argv[2]))
print(probe._pool._idle[0].pid, flush=True)
probe.ask(Question(sys.argv[2], {"act": "hang"}))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_that_is_killed_leaves_no_orphan_even_of_a_hanging_engine(toy, model, how):
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(toy), model()], stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    with client:
        assert client.stdout is not None
        group = int(client.stdout.readline())
        assert processes_of(group)
        client.send_signal(how)
    wait_for(lambda: not processes_of(group))


def test_a_process_that_was_given_up_on_cannot_be_asked_again(probe, model):
    one = probe(limits=Limits(start=60, question=1))
    one.ask(Question(model()))
    worker = one._pool._idle[0]
    with pytest.raises(EngineDiedError, match="no answer within 1 s"):
        worker.ask({"want": "ask", "model": model(), "arguments": {"act": "hang"}})
    with pytest.raises(EngineDiedError):
        worker.ask({"want": "ask", "model": model()})


def test_an_interpreter_that_never_answers_is_given_up_on(probe, toy, model):
    (toy.parent / "tree" / "vllm" / "platforms" / "__init__.py").write_text("import time; time.sleep(3600)\n")
    one = probe(limits=Limits(start=1, question=1), processes=1)
    outcomes = one.answer([Question(model(), {"block_size": 16 * size}) for size in range(1, 9)])
    assert all(isinstance(outcome, Crashed) and not outcome.lasting for outcome in outcomes)
    assert "importing the engine" in outcomes[0].detail
    assert all("does not start: no answer within 1 s" in outcome.detail for outcome in outcomes)


def test_an_engine_that_takes_too_long_over_everything_is_soon_asked_no_more(probe, model, tmp_path, monkeypatch):
    monkeypatch.setattr(process, "_TELL", 0.4)
    said: list[str] = []
    one = probe(limits=Limits(start=60, question=1), processes=1, say=said.append)
    folders = [shutil.copytree(model(), tmp_path / str(number)) for number in range(8)]
    questions = [Question(str(folder), {"act": "hang", "block_size": 8 + n}) for n, folder in enumerate(folders)]
    outcomes = one.answer(questions)
    assert [outcome.detail.partition(" (")[0] for outcome in outcomes] == [
        *["no answer within 1 s"] * 4,
        *["not asked: the engine took too long over 4 questions in a row"] * 4,
    ]
    assert not any(outcome.lasting for outcome in outcomes)
    assert any("of at most 1 s (a question)" in line for line in said)


def test_the_users_own_variables_do_not_decide(probe, model, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("VLLM_TARGET_DEVICE", "tpu")
    assert isinstance(probe().ask(Question(model())), Accepted)
