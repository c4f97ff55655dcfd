"""A test that passed must have asserted something, and have started the engine it asked for."""

import inspect
import sys
from collections.abc import Generator, Iterable
from typing import Any, Final

import pytest
from _pytest.skipping import xfailed_key  # set before the body where an `xfail` mark applies

from staticfire.harness.plugin.cells import TEST
from staticfire.harness.plugin.guards.asserting import asserting_lines
from staticfire.harness.plugin.guards.base import excused, fail
from staticfire.harness.plugin.guards.watch import make_watch

NAME: Final = "assertions"
KEY: Final = f"staticfire-guard-{NAME}"
RUNNERS: Final = frozenset({"vllm_runner", "hf_runner", "cell_runner"})
_NONE: Final[frozenset[int]] = frozenset()


class AssertionsGuard:
    """Fails tests that passed by an early `return`, or never ran their engine."""

    def __init__(self, config: pytest.Config) -> None:
        self._root = f"{config.rootpath}{'/' if str(config.rootpath) != '/' else ''}"
        self._watch = make_watch(self._lines_of)
        self.barred = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Watch the body; items of other kinds, such as doctests, compare by means of their own."""
        if not isinstance(item, pytest.Function):
            return (yield)
        before = _runs()
        watching = self._watch.start()
        try:
            answer = yield
        finally:
            if watching:
                self._watch.stop()
        self.barred += not watching
        ran = _runs() > before
        if excused(item, NAME) or _is_negative(item) or item.stash.get(xfailed_key, None) is not None:
            return answer
        names = _arguments(item)
        asked = RUNNERS & set(names)
        if asked and not ran:
            fail(NAME, f"passed without starting an engine, though it asks for {', '.join(sorted(asked))}")
        if watching and not ran and not self._watch.seen and not self._a_fixture_asserts(item, names):
            fail(
                NAME,
                "passed without asserting anything; a test that cannot run here is skipped, it does not return",
                "if that nothing raises is the test",
            )
        return answer

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the controller of xdist know, which says it for all workers."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[KEY] = self.barred

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear from a worker."""
        self.barred += getattr(node, "workeroutput", {}).get(KEY, 0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where nothing could be watched."""
        if self.barred:
            terminalreporter.write_line(
                f"staticfire guard {NAME}: {self.barred} tests were not watched: a debugger or coverage traces here"
            )

    def _a_fixture_asserts(self, item: pytest.Function, names: Iterable[str]) -> bool:
        """Whether a fixture that the test asks for has a line that asserts, before or after its `yield`."""
        info = getattr(item, "_fixtureinfo", None)
        definitions = {} if info is None else info.name2fixturedefs
        waiting, known = list(names), set(names)
        while waiting:
            for definition in definitions.get(waiting.pop(), ()):
                if self._has_asserting_lines(inspect.unwrap(definition.func)):
                    return True
                waiting += [name for name in definition.argnames if name not in known]
                known.update(definition.argnames)
        return False

    def _has_asserting_lines(self, function: Any) -> bool:
        try:
            lines, first = inspect.getsourcelines(function)
            path = inspect.getsourcefile(function) or ""
        except (OSError, TypeError):
            return False
        return not self._lines_of(path).isdisjoint(range(first, first + len(lines)))

    def _lines_of(self, path: str) -> frozenset[int]:
        if not path.startswith(self._root) or "site-packages" in path:
            return _NONE
        return asserting_lines(path)


def _is_negative(item: pytest.Item) -> bool:
    """A refused cell asserts by being refused."""
    test = item.stash.get(TEST, None)
    return test is not None and test.cell.verdict == "refused"


def _arguments(item: pytest.Function) -> tuple[str, ...]:
    """The fixtures that the test itself names; those it gets by others are theirs to use."""
    info = getattr(item, "_fixtureinfo", None)
    usefixtures = [str(name) for mark in item.iter_markers("usefixtures") for name in mark.args]
    return (*(() if info is None else info.argnames), *usefixtures)


def _runs() -> int:
    """Engines started and runs of them so far, of either runner; nothing is imported to ask."""
    return sum(
        module.uses()
        for name in ("runner", "hf_runner")
        if (module := sys.modules.get(f"{_PACKAGE}.{name}")) is not None
    )


_PACKAGE: Final = __name__.rpartition(".guards.")[0]
