"""What a caller may expect of a client, whatever it does in whatever order.

An accepted request ends exactly once: with tokens that only its own prompt gives, or lost with its engine, or never
heard of again because the caller said that it wants nothing more of it. Its id is taken until then and free afterwards.
At the end nothing is left, neither at the front end nor in a core.
"""

import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import pytest

import toy_core
from loopback import LoopbackEngine, inline, loopback
from staticfire.engine.client.base import Client
from staticfire.engine.client.processes import ProcessClient
from staticfire.engine.core import EngineCore
from staticfire.engine.errors import EngineDeadError, EngineError, RequestError
from staticfire.engine.exchange import FinishedRequest
from toy_core import BUG, FAIL, LOSE_WORKERS, ask, continuation

UNKNOWN = "never added"

PATIENCE_S = 60.0
"""More than processes take for anything here, however busy the machine."""


def interrupt_at(at: int, what: Callable[[], object]) -> bool:
    """Do something, with an interrupt before line `at` of the engine's own code; False if it has fewer."""
    left = at

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if "/staticfire/engine/" not in frame.f_code.co_filename:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        what()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(previous)
    return False


@dataclass
class Expected:
    """A request that has not ended for the caller.

    Attributes:
        prompt: Different for each request that ever bears the same id.
        max_tokens: How many it asks for.
        aborted: Whether it was aborted and is to be reported.
    """

    prompt: list[int]
    max_tokens: int
    aborted: bool = False


class Caller:
    """Uses a client and holds everything that comes back to the model.

    Args:
        client: The client.
        cores: The engine cores behind it.
        turn: Lets every engine take its messages and compute a step.
        ends: The engines, where their servers are in this thread.
    """

    def __init__(
        self,
        client: Client,
        cores: Collection[EngineCore],
        turn: Callable[[], None],
        ends: Sequence[LoopbackEngine] = (),
    ) -> None:
        self.client = client
        self.open: dict[str, Expected] = {}
        self.ends = ends
        self._cores = cores
        self._turn = turn
        self._made = 0
        self._may_fail = False

    @classmethod
    def inline(cls, **typed: Any) -> "Caller":
        """With a core called directly."""
        client = inline(**typed)
        return cls(client, [client.core], lambda: None)

    @classmethod
    def loopback(cls, engines: int = 1, **typed: Any) -> "Caller":
        """With servers at the other end of two queues."""
        client, ends = loopback(engines, **typed)

        def turn() -> None:
            for end in ends:
                end.turn()

        return cls(client, [end.core for end in ends], turn, ends)

    @classmethod
    def processes(cls, engines: int, **typed: Any) -> "Caller":
        """With engines in processes, which go on by themselves."""
        return cls(toy_core.client(data_parallel_size=engines, **typed), [], lambda: time.sleep(0.002))

    def turn(self) -> None:
        """Let the engines go on."""
        self._turn()

    def add(self, *names: str, max_tokens: int = 2, order: int | None = None) -> None:
        """Add requests, all or none; with `order` the last one is told to do something to its engine."""
        expected = {}
        requests = []
        self._may_fail |= order in (FAIL, BUG)
        for name in names:
            self._made += 1
            prompt = [self._made % 397, self._made // 397 % 397, 1]
            if order is not None and name == names[-1]:
                prompt.append(order)
            expected[name] = Expected(prompt, max_tokens)
            requests.append(ask(name, prompt, max_tokens))
        refused = bool(self.open.keys() & expected.keys() or len(expected) < len(names))
        try:
            self.client.add(requests)
        except EngineDeadError:
            assert self.client.dead().keys() == self.client.engine_configs.keys()
        except RequestError as error:
            if not refused or "the id is in use by an unfinished request" not in str(error):
                raise
        else:
            assert not refused
            self.open |= expected
        self.look()

    def abort(self, *names: str, report: bool) -> None:
        """Abort requests, of which there may be none."""
        self.client.abort(names, report=report)
        for name in self.open.keys() & set(names):
            if report:
                self.open[name].aborted = True
            else:
                del self.open[name]
        self.look()

    def step(self) -> None:
        """Take what has ended; after an error, give everything up as `LLM.generate` does."""
        try:
            finished = self.client.step()
        except EngineDeadError as error:
            self._lose(error.lost)
        except (EngineError, KeyError):
            # Of an engine in this process a bug is raised as it is; from another it comes as an EngineError.
            # The request that was told to fail may have been dropped since: its step took others along.
            assert self._may_fail
            self.abort(*self.open, report=False)
        else:
            for request in finished:
                self._end(request)
        self._lose(self.client.take_lost())
        self.look()

    def interrupted(self, at: int, what: Callable[[], None], *names: str) -> bool:
        """Do something, with an interrupt before line `at` of the engine's own code; then give up all, `names` too.

        Returns:
            Whether it had so many lines.
        """
        if not interrupt_at(at, what):
            return False
        self.client.abort((*self.open, *names), report=False)
        self.open = {}
        self.look()
        return True

    def close(self) -> None:
        """Close the client; from then on it refuses everything but an abort and another close."""
        self.client.close()
        self.open = {}
        self.look()
        self.client.abort(["a"], report=True)
        for refused in (
            lambda: self.client.add([ask("a", [1])]),
            self.client.step,
            self.client.stats,
            self.client.views,
        ):
            with pytest.raises(EngineDeadError, match="the engines were closed"):
                refused()

    def drain(self) -> None:
        """Go on until everything has ended; then nothing may be left anywhere."""
        if not self._cores:
            self._wait_for_processes()
        longest = sum(expected.max_tokens for expected in self.open.values())  # one after the other, at worst
        for number in range(longest + 2):
            if number == 1:
                assert not any(expected.aborted for expected in self.open.values()), "an abort has no effect"
            self.turn()
            self.step()
            self.step()  # what had ended before the turn comes first
        assert not self.open, "requests that never end"
        self.turn()
        assert self.client.step() == []
        assert self.client.take_lost() == {}
        assert not self.client.has_unfinished()
        self._look_for_leftovers()

    def look(self) -> None:
        """What holds at every moment."""
        if self.client.has_unfinished():
            assert self.open
        else:
            # What went with one of several engines is had from `take_lost`, and not by waiting.
            assert self.open.keys() == getattr(self.client, "_lost", {}).keys()

    def _wait_for_processes(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.open:
            assert time.monotonic() < deadline, "requests that never end"
            self.step()

    def _end(self, request: FinishedRequest) -> None:
        expected = self.open.pop(request.request_id, None)
        assert expected is not None, f"{request.request_id!r} ends, and is not wanted or had ended"
        wanted = continuation(expected.prompt, expected.max_tokens)
        if request.finish_reason == "abort":
            assert expected.aborted
            assert request.token_ids == wanted[: len(request.token_ids)]
        else:
            assert request.finish_reason == "length"
            assert request.token_ids == wanted

    def _lose(self, names: Collection[str]) -> None:
        if names:
            assert any(LOSE_WORKERS in expected.prompt for expected in self.open.values()) or self.client.dead()
        for name in names:
            assert name in self.open, f"{name!r} is lost, and is not wanted or had ended"
        for name in names:
            del self.open[name]

    def _look_for_leftovers(self) -> None:
        for core in self._cores:
            assert not core.has_unfinished()
            assert core.unfinished() == set()
            assert not core.scheduler.has_unfinished()
            core.scheduler.check_integrity()
            pool = core.scheduler.cache.pool
            assert pool.num_free == pool.num_usable
        for end in self.ends:
            assert end.ended or end.server._numbers == {}
        client = self.client
        if isinstance(client, ProcessClient):
            books = (client._open, client._number_of, client._finished, client._errors, client._lost, client._aborts)
            assert [len(book) for book in books] == [0] * len(books), books
