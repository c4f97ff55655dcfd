"""The client's protocol: every order of what callers and engines do keeps what the contract promises."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import toy_core
from loopback import loopback
from protocol_model import UNKNOWN, Caller, interrupt_at
from staticfire.engine.client.base import Client
from staticfire.engine.errors import EngineDeadError, EngineError
from staticfire.engine.llm import LLM
from staticfire.engine.sampling_params import SamplingParams
from toy_core import BUG, DIE, FAIL, LOSE_WORKERS, continuation

Do = Callable[[Caller], None]

DOINGS: dict[str, Do] = {
    "add a": lambda caller: caller.add("a"),
    "add b": lambda caller: caller.add("b"),
    "abort a": lambda caller: caller.abort("a", report=True),
    "drop a": lambda caller: caller.abort("a", report=False),
    "abort all": lambda caller: caller.abort("b", UNKNOWN, "a", "b", report=True),
    "drop all": lambda caller: caller.abort("b", UNKNOWN, "a", "b", report=False),
    "step": lambda caller: caller.step(),
    "turn": lambda caller: caller.turn(),
}
MAKERS: dict[str, Callable[[], Caller]] = {
    "inline": Caller.inline,
    "loopback": Caller.loopback,
}


def run_all(make: Callable[[], Caller], length: int) -> int:
    """Every order of so many doings, each begun where the one before has left nothing."""
    caller = make()
    names = [name for name in DOINGS if name != "turn" or caller.ends]
    count = 0
    for order in product(names, repeat=length):
        count += 1
        try:
            for name in order:
                DOINGS[name](caller)
            caller.drain()
        except BaseException as error:
            error.add_note(f"after: {', '.join(order)}")
            raise
    return count


@pytest.mark.parametrize("how", MAKERS)
@pytest.mark.parametrize(
    "length",
    [
        1,
        2,
        3,
        4,
        pytest.param(5, marks=pytest.mark.slow),
        pytest.param(6, marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
@pytest.mark.timeout(3600)
def test_every_order_of_a_few(how: str, length: int):
    assert run_all(MAKERS[how], length) == (8 if how == "loopback" else 7) ** length


@pytest.mark.parametrize("how", MAKERS)
def test_an_abort_that_is_taken_back_before_it_was_reported(how: str):
    caller = MAKERS[how]()
    caller.add("a", max_tokens=900)
    caller.turn()
    caller.abort("a", report=True)
    caller.abort("a", report=False)
    caller.drain()
    caller.add("a")
    caller.drain()


def ended_unread(caller: Caller) -> None:
    """`a` has ended and the caller has not heard of it; `b` goes on."""
    caller.add("a", max_tokens=1)
    caller.turn()
    caller.add("b", max_tokens=3)


def aborted(caller: Caller) -> None:
    """`a` was aborted and the caller has not heard of it; `b` goes on."""
    caller.add("a", "b", max_tokens=3)
    caller.abort("a", report=True)


BEFORE: list[Do] = [
    lambda caller: None,
    lambda caller: caller.add("a", "b", max_tokens=3),
    ended_unread,
    aborted,
]
INTERRUPTED: dict[str, Do] = {
    "add": lambda caller: caller.add("c", "d"),
    "abort": lambda caller: caller.abort("a", "b", report=True),
    "drop": lambda caller: caller.abort("a", "b", report=False),
    "step": lambda caller: caller.step(),
}


@pytest.mark.parametrize("how", MAKERS)
@pytest.mark.parametrize("what", INTERRUPTED)
def test_an_interrupt_anywhere_leaves_nothing(how: str, what: str):
    """Whatever was interrupted: once the caller has given up what it had, nothing is left, and all goes on."""
    caller = MAKERS[how]()
    for before in BEFORE:
        at = 1
        interrupted = True
        while interrupted:
            before(caller)
            interrupted = caller.interrupted(at, lambda: INTERRUPTED[what](caller), "c", "d")
            caller.drain()
            at += 3 if at < 60 else 11
        assert at > 3


class ProtocolMachine(RuleBasedStateMachine):
    """Two engines or one, requests that fail and engines that die, interrupts at any line."""

    caller: Caller
    names = st.lists(st.sampled_from(["a", "b", "c", UNKNOWN]), min_size=1, max_size=4)
    dies = False

    @initialize(how=st.sampled_from(["inline", "one", "two"]), seqs=st.sampled_from([1, 2, 8]))
    def start(self, how, seqs):
        if how == "inline":
            self.caller = Caller.inline(max_num_seqs=seqs)
        else:
            self.caller = Caller.loopback(1 if how == "one" else 2, max_num_seqs=seqs)

    @rule(names=st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_tokens=st.sampled_from([1, 2, 5, 300]))
    def add(self, names, max_tokens):
        self.caller.add(*names, max_tokens=max_tokens)

    @rule(name=st.sampled_from("abc"), order=st.sampled_from([FAIL, BUG]))
    def add_one_that_fails(self, name, order):
        self.caller.add(name, order=order)

    @precondition(lambda self: not self.dies)
    @rule(name=st.sampled_from("abc"))
    def add_one_that_kills(self, name):
        if name not in self.caller.open:
            self.caller.add(name, order=LOSE_WORKERS)
            self.dies = True

    @rule(names=names, report=st.booleans())
    def abort(self, names, report):
        self.caller.abort(*names, report=report)

    @rule(count=st.integers(1, 4))
    def turn(self, count):
        for _ in range(count):
            self.caller.turn()

    @rule()
    def step(self):
        self.caller.step()

    @rule(at=st.integers(1, 150), what=st.sampled_from(["add", "abort", "drop", "step"]))
    def interrupt(self, at, what):
        self.caller.interrupted(at, lambda: INTERRUPTED[what](self.caller), "c", "d")

    def teardown(self):
        if not hasattr(self, "caller"):
            return
        try:
            self.caller.abort(
                *(name for name, wanted in self.caller.open.items() if wanted.max_tokens > 5), report=True
            )
            self.caller.drain()
            self.caller.close()
        finally:
            self.caller.client.close()


def run_machine(examples: int, length: int, machine: type[ProtocolMachine] = ProtocolMachine) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=length,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


def test_any_order_of_events():
    run_machine(80, 20)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_any_order_of_events_at_length():
    run_machine(2000, 40)


class ProcessMachine(ProtocolMachine):
    """The same with real processes, which go on while the caller thinks, and die of SIGKILL."""

    @initialize(engines=st.sampled_from([1, 2]), seqs=st.sampled_from([1, 2, 8]))
    def start(self, engines, seqs):
        self.caller = Caller.processes(engines, max_num_seqs=seqs)

    @precondition(lambda self: not self.dies)
    @rule(name=st.sampled_from("abc"), order=st.sampled_from([LOSE_WORKERS, DIE]))
    def add_one_that_kills(self, name, order):
        if name not in self.caller.open:
            self.caller.add(name, order=order)
            self.dies = True


@pytest.mark.timeout(120)
def test_an_example_that_fails_ends_its_processes(monkeypatch: pytest.MonkeyPatch):
    """Else what they leave hides the failure: pytest raises its warnings about them in the place of it."""

    def fail(_caller: Caller) -> None:
        raise AssertionError("a failure")

    machine = ProcessMachine()
    machine.caller = Caller.processes(1)
    monkeypatch.setattr(Caller, "drain", fail)
    with pytest.raises(AssertionError, match="a failure"):
        machine.teardown()
    with pytest.raises(EngineDeadError, match="the engines were closed"):
        machine.caller.client.stats()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_any_order_of_events_over_processes():
    run_machine(100, 30, ProcessMachine)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(toy_core.LLAMA))
    return tmp_path


def toy_llm(model: Path, how: str) -> LLM:
    """An LLM whose engine runs while its front end waits."""

    def make(*_: object) -> Client:
        if how == "inline":
            return Caller.inline().client
        client, _engines = loopback()
        client.link.runs = True  # type: ignore[attr-defined]
        return client

    with patch("staticfire.engine.llm.make_client", make):
        return LLM(model, num_gpu_blocks_override=200)


PARAMS = SamplingParams(max_tokens=3, ignore_eos=True)


def tokens(llm: LLM, prompts: list[list[int]]) -> list[list[int]]:
    return [output.outputs[0].token_ids for output in llm.generate(prompts, PARAMS, request_ids=["a", "b"])]


@pytest.mark.parametrize("how", MAKERS)
def test_an_interrupt_anywhere_in_generate_leaves_nothing(model: Path, how: str):
    llm = toy_llm(model, how)
    at = 1
    while interrupt_at(at, lambda: tokens(llm, [[1, 2], [3]])):
        assert tokens(llm, [[5, at % 300], [6]]) == [continuation([5, at % 300], 3), continuation([6], 3)], at
        assert not llm.client.has_unfinished(), at
        at += 7
    assert at > 300, "too few lines were traced"
    llm.close()


def test_an_abort_from_a_thread_and_then_an_interrupt(model: Path):
    """The front end asks for what `a` has, and a moment later wants nothing of it: the engine answers neither."""
    llm = toy_llm(model, "loopback")
    link = llm.client.link  # type: ignore[attr-defined]
    wait, left = link.wait, 3

    def interrupted(*args: object) -> object:
        nonlocal left
        left -= 1
        if left == 0:
            llm.abort(["a"])  # as from another thread
            raise KeyboardInterrupt
        return wait(*args)

    link.wait = interrupted
    with pytest.raises(KeyboardInterrupt):
        tokens(llm, [[1, 2], [3]])
    assert tokens(llm, [[5], [6]]) == [continuation([5], 3), continuation([6], 3)]
    llm.close()


@pytest.mark.parametrize("how", MAKERS)
def test_dead_workers_are_an_error_and_never_a_wait(model: Path, how: str):
    llm = toy_llm(model, how)
    with pytest.raises(EngineDeadError, match=r"worker 0.1 \(pid 5\): killed by SIGKILL") as caught:
        tokens(llm, [[1], [LOSE_WORKERS]])
    assert set(caught.value.lost) == {"a", "b"}
    assert not llm.client.has_unfinished()
    with pytest.raises(EngineDeadError, match="no engine is left"):
        tokens(llm, [[1], [2]])
    llm.close()


@pytest.mark.parametrize("how", MAKERS)
def test_a_request_that_somebody_else_ended_is_an_error_and_never_a_wait(model: Path, how: str):
    llm = toy_llm(model, how)
    step, left = llm.client.step, 2

    def dropped() -> object:
        nonlocal left
        left -= 1
        if left == 0:
            llm.client.abort(["a"], report=False)
        return step()

    with patch.object(llm.client, "step", dropped), pytest.raises(EngineError, match="request 'a': ended by somebody"):
        tokens(llm, [[1], [2]])
    assert tokens(llm, [[5], [6]]) == [continuation([5], 3), continuation([6], 3)]
    llm.close()


@pytest.mark.parametrize("how", MAKERS)
def test_a_closed_client_says_so(how: str):
    caller = MAKERS[how]()
    caller.add("a", max_tokens=50)
    caller.turn()
    caller.close()
    caller.close()
