"""The front end and engines in other processes: what goes over, what comes back, what is refused, what is left."""

import gc
import os
import threading
import time
from collections.abc import Iterator

import pytest

import toy_core
from staticfire.engine.client.limits import Limits
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.errors import CheckpointError, EngineDeadError, EngineError, EngineStartError, RequestError
from staticfire.engine.exchange import FinishedRequest
from staticfire.engine.wire.messages import Load, Progress
from toy_core import BUG, DIE, FAIL, LOSE_WORKERS, SLEEP, SLOW, ask, continuation, finish

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def one() -> Iterator[ProcessClient]:
    client = toy_core.client()
    yield client
    client.close()


@pytest.fixture
def two() -> Iterator[ProcessClient]:
    client = toy_core.client(data_parallel_size=2)
    yield client
    client.close()


def test_requests_go_over_and_come_back(one: ProcessClient):
    prompts = {str(n): [n, 2 * n, 3] for n in range(1, 40)}
    one.add([ask(name, prompt, 3 + int(name)) for name, prompt in prompts.items()])
    assert one.has_unfinished()
    finished = finish(one, prompts)
    assert {name: done.token_ids for name, done in finished.items()} == {
        name: continuation(prompt, 3 + int(name)) for name, prompt in prompts.items()
    }
    assert {done.finish_reason for done in finished.values()} == {"length"}
    assert not one.has_unfinished()
    assert one.step() == []


def test_the_counts_of_the_engine_arrive(one: ProcessClient):
    assert one.stats()[0].generation_tokens == 0
    one.add([ask("a", [1] * 10, 7)])
    finish(one, "a")
    stats = one.stats()[0]
    assert (stats.prompt_tokens, stats.generation_tokens, stats.finished_length) == (10, 7, 1)
    assert (stats.num_running, stats.num_waiting) == (0, 0)


def test_the_configuration_is_what_the_engine_settled(two: ProcessClient):
    views = two.views()
    assert [view.holder for view in views] == [
        "front end",
        "front end on engine 0",
        "front end on engine 1",
        "engine core 0",
        "worker 0.0",
        "engine core 1",
        "worker 1.0",
    ]
    for index in (0, 1):
        known, core, worker = (
            next(view.fields for view in views if view.holder == holder)
            for holder in (f"front end on engine {index}", f"engine core {index}", f"worker {index}.0")
        )
        assert known == core == worker
    assert views[0].fields["runtime.num_gpu_blocks"] == 400
    assert two.unreported == {}


def test_refusals_come_at_once_all_together_and_nothing_runs(one: ProcessClient):
    with pytest.raises(RequestError) as caught:
        one.add([ask("a", []), ask("b", [1]), ask("b", [1]), ask("c", [512]), ask("d", [1] * 5000)])
    lines = str(caught.value).splitlines()
    assert len(lines) == 4
    assert "'a': the prompt is empty" in lines[0]
    assert "'b': the id is in use" in lines[1]
    assert "'c': prompt: token 512 at index 0" in lines[2]
    assert "'d': the prompt has 5000 tokens; max_model_len=1024" in lines[3]
    assert not one.has_unfinished()


def test_refusals_are_those_of_an_engine_in_this_process(one: ProcessClient, monkeypatch: pytest.MonkeyPatch):
    from staticfire.engine import core

    monkeypatch.setattr(core, "make_executor", toy_core.ToyExecutor)
    here = core.EngineCore(toy_core.resolved())
    requests = [ask("a", []), ask("b", [1]), ask("b", [-1]), ask("c", [1] * 1000, 9000), ask("d", [3] * 1024)]
    with pytest.raises(RequestError) as there_error:
        one.add(requests)
    with pytest.raises(RequestError) as here_error:
        here.add(requests)
    assert str(there_error.value) == str(here_error.value)


def test_an_id_in_use_and_one_that_cannot_be_sent(one: ProcessClient):
    one.add([ask("a", [SLOW, 1], 30)])
    with pytest.raises(RequestError, match=r"'a': the id is in use"):
        one.add([ask("a", [1])])
    with pytest.raises(RequestError, match=r"cannot be sent"):
        one.add([ask("\ud800", [1])])
    finish(one, "a")


def test_an_abort_returns_what_there_is(one: ProcessClient):
    one.add([ask("a", [SLOW, 1], 900), ask("b", [5], 900)])
    one.step()
    one.abort(["a", "unknown"])
    done = finish(one, "a")["a"]
    assert done.finish_reason == "abort"
    assert done.token_ids == continuation([SLOW, 1], len(done.token_ids))
    one.abort(["b"], report=False)
    assert not one.has_unfinished()


def test_an_id_can_be_used_again_at_once_after_an_abort_without_report(one: ProcessClient):
    for number in range(1, 30):
        one.add([ask("a", [number], 2)])
        one.abort(["a"], report=False)
    one.add([ask("a", [77], 4)])
    assert finish(one, "a")["a"].token_ids == continuation([77], 4)


def test_what_came_of_an_aborted_request_is_not_another_ones(one: ProcessClient):
    """Finished or failed, but not asked for when it was aborted: its id starts afresh."""
    one.add([ask("a", [1]), ask("b", [2, FAIL])])
    deadline = time.monotonic() + 20
    while one._open:
        assert time.monotonic() < deadline
        one.stats()
    assert one.has_unfinished()
    one.abort(["a", "b"], report=False)
    assert not one.has_unfinished()
    one.add([ask("a", [3]), ask("b", [4])])
    finished = finish(one, "ab")
    assert finished["a"].token_ids == continuation([3], 5)
    assert finished["b"].token_ids == continuation([4], 5)


def test_an_interrupt_while_adding_leaves_nothing(one: ProcessClient, monkeypatch: pytest.MonkeyPatch):
    def interrupt(client: ProcessClient, engine: int, share: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ProcessClient, "_send_share", interrupt)
        with pytest.raises(KeyboardInterrupt):
            one.add([ask("a", [1])])
    assert not one.has_unfinished()
    one.add([ask("a", [2])])
    assert finish(one, "a")["a"].token_ids == continuation([2], 5)


def test_an_abort_from_another_thread_ends_the_wait(one: ProcessClient):
    one.add([ask("a", [SLOW, 1], 900)])
    timer = threading.Timer(0.1, one.abort, [["a"]])
    timer.start()
    assert finish(one, "a")["a"].finish_reason == "abort"
    timer.join()


@pytest.mark.parametrize(("order", "text"), [(FAIL, "ordered to fail"), (BUG, "KeyError: 'a bug'")])
def test_a_step_that_fails_takes_its_requests_along_and_no_others(one: ProcessClient, order: int, text: str):
    one.add([ask("a", [SLOW, 2], 10)])
    time.sleep(0.05)
    one.add([ask("bad", [order])])
    with pytest.raises(EngineError) as caught:
        finish(one, ["a", "bad"])
    assert type(caught.value) is EngineError
    assert str(caught.value) == text
    one.add([ask("c", [3], 4)])
    assert finish(one, "c")["c"].token_ids == continuation([3], 4)
    assert not one.has_unfinished()
    assert one.dead() == {}


def test_an_engine_that_dies_takes_its_requests_along(one: ProcessClient):
    one.add([ask("a", [1], 5)])
    finish(one, "a")
    one.add([ask("b", [DIE]), ask("c", [1])])
    with pytest.raises(EngineDeadError, match=r"^engine core 0 \(pid \d+\): killed by SIGKILL$") as caught:
        finish(one, ["b", "c"])
    assert caught.value.who == "engine core 0"
    assert set(caught.value.lost) == {"b", "c"}
    assert not one.has_unfinished()
    with pytest.raises(EngineDeadError, match=r"no engine is left: .* killed by SIGKILL"):
        one.add([ask("d", [1])])
    with pytest.raises(EngineDeadError, match=r"no engine is left"):
        one.views()
    assert "killed by SIGKILL" in one.dead()[0]
    one.abort(["b"])


def test_a_death_while_idle_is_noticed(one: ProcessClient):
    os.kill(one.link.engines[0].child.pid, 9)
    deadline = time.monotonic() + 20
    while not one.dead():
        assert time.monotonic() < deadline
    assert "killed by SIGKILL" in one.dead()[0]


def test_an_engine_without_workers_ends_itself(one: ProcessClient):
    one.add([ask("a", [LOSE_WORKERS])])
    with pytest.raises(EngineDeadError, match=r"ended itself: worker 0.1 \(pid 5\): killed by SIGKILL") as caught:
        finish(one, "a")
    assert caught.value.lost == ("a",)


def test_other_engines_go_on_when_one_dies(two: ProcessClient):
    names = [str(n) for n in range(6)]
    two.add([ask(name, [SLOW, int(name)], 30) for name in names])
    two.add([ask("bad", [DIE])])
    assert two.link.alive() == [0, 1]
    lost: dict[str, EngineDeadError] = {}
    finished: dict[str, FinishedRequest] = {}
    deadline = time.monotonic() + 30
    while {*names, "bad"} - finished.keys() - lost.keys():
        assert time.monotonic() < deadline
        finished |= {done.request_id: done for done in two.step()}
        lost |= two.take_lost()
    assert "bad" in lost
    assert len(finished) == 3
    assert all(done.token_ids == continuation([SLOW, int(name)], 30) for name, done in finished.items())
    assert len({str(error) for error in lost.values()}) == 1
    assert list(two.dead()) == [0]
    two.add([ask(name, [int(name)]) for name in names])
    assert len(finish(two, names)) == 6
    assert {view.engine for view in two.views() if view.role == "engine core"} == {1}


def test_requests_are_spread_and_loads_are_published(two: ProcessClient):
    two.add([ask(str(n), [SLOW, n], 60) for n in range(10)])
    assert two._own_load() == {0: 5, 1: 5}
    deadline = time.monotonic() + 20
    while set(two._balancer.loads.values()) != {Load(5, 0)}:
        assert time.monotonic() < deadline
        two.step()
    finish(two, [str(n) for n in range(10) if two.has_unfinished() and str(n) in two._number_of])


def test_a_pool_that_is_smaller_on_one_engine_limits_all():
    client = toy_core.client(data_parallel_size=2, seed=4)
    try:
        assert client.config.runtime.num_gpu_blocks == 250
        with pytest.raises(RequestError, match=r"needs 64 cache blocks to compute 1010 tokens and the pool has 49"):
            client.add([ask("a", [1] * 1000, 11)])
    finally:
        client.close()


def test_a_coordinator_that_dies_costs_a_warning(two: ProcessClient):
    assert two.coordinator is not None
    two.coordinator.child.kill()
    with pytest.warns(RuntimeWarning, match=r"coordinator \(pid \d+\): killed by SIGKILL"):
        two.stats()
    two.add([ask("a", [1]), ask("b", [2])])
    assert len(finish(two, "ab")) == 2
    two.add([ask("c", [1])])
    assert len(finish(two, "c")) == 1


def test_silence_is_an_end():
    client = toy_core.client(limits=Limits(silence_s=0.5))
    try:
        client.add([ask("a", [1, SLOW], 100)])
        assert len(finish(client, "a")) == 1, "two seconds of work, but it speaks in between"
        client.add([ask("b", [SLEEP])])
        with pytest.raises(EngineDeadError, match=r"engine core 0 .* said nothing for 0.5 s"):
            finish(client, "b")
    finally:
        client.close()


def test_a_version_that_speaks_the_same_protocol_is_welcome():
    client = toy_core.client("other_version")
    try:
        client.add([ask("a", [1])])
        assert finish(client, "a")["a"].token_ids == continuation([1], 5)
    finally:
        client.close()


def test_another_protocol_is_refused_with_both_versions():
    from staticfire import __version__

    with pytest.raises(EngineStartError) as caught:
        toy_core.client("other_protocol")
    assert "engine core 0 speaks protocol 77 (staticfire 77.0)" in str(caught.value)
    assert f"this front end protocol 1 (staticfire {__version__})" in str(caught.value)


def test_what_an_engine_says_of_its_start_is_raised_here():
    with pytest.raises(CheckpointError) as caught:
        toy_core.client(seed=1)
    assert str(caught.value) == "the toy is broken"
    assert caught.value.__notes__ == ["engine core 0: How far its start had come: imported."]
    with pytest.raises(EngineStartError) as foreign:
        toy_core.client(seed=2)
    assert str(foreign.value) == "KeyError: 'nobody foresaw this'"
    assert "toy_core.py" in foreign.value.__notes__[0]


def test_a_slow_start_names_the_phase_and_the_limit():
    with pytest.raises(EngineStartError, match=r"did not say hello within 0.3 s. How far its start had come: started"):
        toy_core.client("silent", Limits(hello_s=0.3))
    with pytest.raises(EngineStartError, match=r"did not get ready within 1 s. How far its start had come: imported"):
        toy_core.client(seed=3, limits=Limits(ready_s=1.0))


def test_an_engine_that_says_what_is_no_message_is_ended():
    client = toy_core.client("babble")
    try:
        client.add([ask("a", [1])])
        with pytest.raises(EngineDeadError, match=r"engine core 0 .* sent what cannot be read"):
            finish(client, "a")
    finally:
        client.close()


def test_an_engine_without_a_connection_is_ended(one: ProcessClient):
    """As after a message that was too large for its socket, had one been sent."""
    one.link._identities[0] = b"unheard of"
    one.add([ask("a", [1])])
    with pytest.raises(EngineDeadError, match=r"engine core 0 .* has lost its connection, so it was ended"):
        finish(one, "a")


def test_closing_in_the_middle_and_again():
    client = toy_core.client(data_parallel_size=2)
    client.add([ask(str(n), [SLOW, n], 500) for n in range(4)])
    client.step()
    client.close()
    client.close()
    with pytest.raises(EngineDeadError, match=r"were closed"):
        client.add([ask("x", [1])])
    client.abort(["x"])


def test_a_client_that_is_dropped_ends_its_engines():
    before = toy_core.family()
    client = toy_core.client()
    pids = toy_core.family() - before
    del client
    gc.collect()
    assert toy_core.all_end(pids)


def test_phases_are_told_in_order():
    heard: list[tuple[int, str]] = []
    pids: set[int] = set()

    def hear(engine: int, progress: Progress) -> None:
        heard.append((engine, progress.phase))
        pids.add(progress.pid)

    toy_core.client(on_progress=hear, data_parallel_size=2).close()
    for engine in (0, 1):
        assert [phase for index, phase in heard if index == engine] == [
            "started",
            "said hello",
            "imported",
            "joined the coordinator",
            "loaded",
            "answered",
        ]
    assert len(pids) == 2


def test_many_threads_may_ask_while_one_steps(two: ProcessClient):
    two.add([ask(str(n), [SLOW, n], 20) for n in range(8)])
    errors: list[BaseException] = []

    def look() -> None:
        try:
            for _ in range(20):
                two.stats()
                two.dead()
                two.views()
        except BaseException as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert len(finish(two, [str(n) for n in range(8)], limit_s=60)) == 8
    for thread in threads:
        thread.join()
    assert not errors


def test_the_environment_sets_the_limits(monkeypatch: pytest.MonkeyPatch):
    """The executor's own, and a little more, so that its error comes first."""
    monkeypatch.setenv("STATICFIRE_START_TIMEOUT_S", "12.5")
    monkeypatch.setenv("STATICFIRE_STEP_TIMEOUT_S", "3")
    assert Limits.from_environment() == Limits(ready_s=42.5, silence_s=33.0)
    for wrong in ("soon", "0", "-1", "inf", "nan"):
        monkeypatch.setenv("STATICFIRE_START_TIMEOUT_S", wrong)
        with pytest.raises(EngineError, match=r"STATICFIRE_START_TIMEOUT_S"):
            Limits.from_environment()
