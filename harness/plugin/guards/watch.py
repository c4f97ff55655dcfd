"""Watches whether an asserting line of the suite is executed, until the first one is."""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final, Protocol

TOOL: Final = 4
"""Python's identifier of a monitoring tool; 0 to 3 and 5 are spoken for (debugger, coverage, profiler, optimizer)."""

LinesOf = Callable[[str], frozenset[int]]


class Watch(Protocol):
    """One way to watch.

    Attributes:
        seen: Whether an asserting line was executed since `start`.
    """

    seen: bool

    def start(self) -> bool:
        """Begin; False where something else watches already and this way is barred."""
        ...

    def stop(self) -> None:
        """End, whatever was seen."""
        ...


class TraceWatch:
    """By `sys.settrace`, the only way before Python 3.12; barred while a debugger or coverage traces."""

    def __init__(self, lines_of: LinesOf) -> None:
        self.seen = False
        self._lines_of = lines_of

    def start(self) -> bool:
        """See `Watch.start`."""
        self.seen = False
        if sys.gettrace() is not None:
            return False
        sys.settrace(self._call)
        return True

    def stop(self) -> None:
        """See `Watch.stop`; somebody else's trace function is left alone."""
        if sys.gettrace() == self._call:
            sys.settrace(None)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 -- Python's signature
        lines = self._lines_of(frame.f_code.co_filename)
        return self._line if lines and not self.seen else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:  # noqa: ARG002 -- Python's signature
        if event == "line" and frame.f_lineno in self._lines_of(frame.f_code.co_filename):
            self.seen = True
            self.stop()
            return None
        return self._line


class MonitorWatch:
    """By `sys.monitoring`: nothing is slower but the first execution of each line, and others may watch as well."""

    def __init__(self, lines_of: LinesOf) -> None:
        self.seen = False
        self._lines_of = lines_of
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined, unused-ignore]

    def start(self) -> bool:
        """See `Watch.start`."""
        self.seen = False
        if self._monitoring.get_tool(TOOL) is not None:
            return False
        self._monitoring.use_tool_id(TOOL, "staticfire")
        self._monitoring.register_callback(TOOL, self._monitoring.events.LINE, self._line)
        self._monitoring.set_events(TOOL, self._monitoring.events.LINE)
        self._monitoring.restart_events()
        return True

    def stop(self) -> None:
        """See `Watch.stop`."""
        if self._monitoring.get_tool(TOOL) == "staticfire":
            self._monitoring.set_events(TOOL, 0)
            self._monitoring.register_callback(TOOL, self._monitoring.events.LINE, None)
            self._monitoring.free_tool_id(TOOL)

    def _line(self, code: CodeType, line: int) -> Any:
        if line in self._lines_of(code.co_filename):
            self.seen = True
            self._monitoring.set_events(TOOL, 0)
        return self._monitoring.DISABLE


def make_watch(lines_of: LinesOf) -> Watch:
    """The best way that this Python has."""
    return MonitorWatch(lines_of) if sys.version_info >= (3, 12) else TraceWatch(lines_of)
