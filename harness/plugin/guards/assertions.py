"""A test that passed must have asserted something, or run the engine it asked for."""

import sys
from collections.abc import Generator
from typing import Any, Final

import pytest

from staticfire.harness.plugin.cells import TEST
from staticfire.harness.plugin.guards.asserting import asserting_lines
from staticfire.harness.plugin.guards.base import excused, fail
from staticfire.harness.plugin.guards.watch import make_watch

NAME: Final = "assertions"
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
        """Watch the body."""
        before = _runs()
        watching = self._watch.start()
        try:
            answer = yield
        finally:
            if watching:
                self._watch.stop()
        self.barred += not watching
        ran = _runs() > before
        if excused(item, NAME) or _is_negative(item):
            return answer
        asked = RUNNERS & set(getattr(item, "fixturenames", ()))
        if asked and not ran:
            fail(NAME, f"passed without running an engine, though it asks for {', '.join(sorted(asked))}")
        if watching and not ran and not self._watch.seen:
            fail(NAME, "passed without asserting anything; a test that cannot run here is skipped, it does not return")
        return answer

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say where nothing could be watched."""
        if self.barred:
            terminalreporter.write_line(
                f"staticfire guard {NAME}: {self.barred} tests were not watched: a debugger or coverage traces here"
            )

    def _lines_of(self, path: str) -> frozenset[int]:
        if not path.startswith(self._root) or "site-packages" in path:
            return _NONE
        return asserting_lines(path)


def _is_negative(item: pytest.Item) -> bool:
    """A refused cell asserts by being refused."""
    test = item.stash.get(TEST, None)
    return test is not None and test.cell.verdict == "refused"


def _runs() -> int:
    """Engine runs so far, of either runner; nothing is imported to ask."""
    return sum(
        module.uses()
        for name in ("runner", "hf_runner")
        if (module := sys.modules.get(f"{_PACKAGE}.{name}")) is not None
    )


_PACKAGE: Final = __name__.rpartition(".guards.")[0]
