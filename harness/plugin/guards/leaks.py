"""A test must leave environment variables, the current folder and threads as it found them.

What a fixture of a wider scope sets is the fixture's until it is torn down; what is left then is its leak.
"""

import fnmatch
import os
import threading
import time
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from staticfire.harness.plugin.guards.base import excused, fail

NAME: Final = "leaks"
GRACE_SECONDS: Final = 1.0
"""How long an ending thread may take to end."""
OWN: Final = ("PYTEST_CURRENT_TEST", "PYTEST_VERSION", "TORCHINDUCTOR_CACHE_DIR")
"""Variables of pytest, and one that torch sets for its own processes when transformers first computes."""
FOR_GOOD: Final = ("tqdm._monitor.TMonitor",)
"""Types of threads that a library starts once, at its first use, and leaves to the process."""


@dataclass(frozen=True, slots=True)
class State:
    """What of a process outlives a test."""

    environment: dict[str, str]
    folder: str
    threads: frozenset[threading.Thread]


@dataclass(slots=True)
class _Owned:
    """What a fixture of a wider scope changed while it was set up."""

    before: State
    variables: set[str] = field(default_factory=set)
    threads: set[threading.Thread] = field(default_factory=set)
    folder: bool = False


class LeaksGuard:
    """Fails the test that leaks, not the one that stumbles over it."""

    def __init__(self, config: pytest.Config) -> None:
        self._known = [str(pattern) for pattern in config.getini("sf_known_threads")]
        self._owned: dict[Any, _Owned] = {}
        self._ended: list[_Owned] = []
        self._left: list[str] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note how things are before the first fixture."""
        item.stash[BEFORE] = state()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Compare after the last."""
        answer = yield
        before = item.stash.get(BEFORE, None)
        found = [*self._left, *([] if before is None else self._changes(before))]
        self._left = []
        self._ended = []
        if found and not excused(item, NAME):
            fail(NAME, "; ".join(found))
        return answer

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """What a wider fixture changes, it owns."""
        if fixturedef.scope == "function":
            return (yield)
        before = state()
        try:
            return (yield)
        finally:
            now = state()
            owned = _Owned(before, set(_differing(before, now)), set(now.threads - before.threads))
            owned.folder = before.folder != now.folder
            if owned.variables or owned.threads or owned.folder:
                self._owned[fixturedef] = owned

    def pytest_fixture_post_finalizer(self, fixturedef: Any) -> None:
        """After its end a fixture must have put back what it changed."""
        owned = self._owned.pop(fixturedef, None)
        if owned is None:
            return
        self._ended.append(owned)
        now = state()
        who = f"the fixture {fixturedef.argname!r} ({fixturedef.scope})"
        # one that it asked for while it was set up, and that lives on, answers for itself
        others = list(self._owned.values())
        for name in sorted(owned.variables.difference(*(other.variables for other in others))):
            was, found = owned.before.environment.get(name), now.environment.get(name)
            if was != found:
                self._left.append(f"{who} left {_variable(name, was, found)}")
        alive = self._alive(owned.threads.difference(*(other.threads for other in others)) & now.threads)
        self._left += [f"{who} left the thread {thread.name!r} running" for thread in alive]
        if owned.folder and now.folder != owned.before.folder and not any(other.folder for other in others):
            self._left.append(f"{who} left the current folder {now.folder}, it was {owned.before.folder}")

    def _changes(self, before: State) -> list[str]:
        now = state()
        owners = [*self._owned.values(), *self._ended]
        variables = {name for owned in owners for name in owned.variables}
        threads = {thread for owned in owners for thread in owned.threads}
        found = [
            f"left {_variable(name, before.environment.get(name), now.environment.get(name))}"
            for name in _differing(before, now)
            if name not in variables
        ]
        if before.folder != now.folder and not any(owned.folder for owned in owners):
            found.append(f"left the current folder {now.folder}, it was {before.folder}")
        alive = self._alive(now.threads - before.threads - threads)
        return found + [f"left the thread {thread.name!r} running" for thread in alive]

    def _alive(self, threads: Iterable[threading.Thread]) -> list[threading.Thread]:
        """Those that nobody expects, after a while to end in."""
        deadline = time.monotonic() + GRACE_SECONDS
        suspects = [thread for thread in threads if not self._is_known(thread)]
        for thread in suspects:
            thread.join(max(0.0, deadline - time.monotonic()))
        return sorted((thread for thread in suspects if thread.is_alive()), key=lambda thread: thread.name)

    def _is_known(self, thread: threading.Thread) -> bool:
        kind = f"{type(thread).__module__}.{type(thread).__qualname__}"
        return kind in FOR_GOOD or any(fnmatch.fnmatch(thread.name, pattern) for pattern in self._known)


BEFORE: Final = pytest.StashKey[State]()


def state() -> State:
    """How things are now."""
    environment = {name: value for name, value in os.environ.items() if name not in OWN}
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:
        folder = "(deleted)"
    return State(environment, folder, frozenset(threading.enumerate()))


def _differing(before: State, now: State) -> list[str]:
    names = before.environment.keys() | now.environment.keys()
    return sorted(name for name in names if before.environment.get(name) != now.environment.get(name))


def _variable(name: str, was: str | None, now: str | None) -> str:
    if now is None:
        return f"the variable {name} unset, it was {was!r}"
    return f"the variable {name}={now!r}, " + ("it was not set" if was is None else f"it was {was!r}")
