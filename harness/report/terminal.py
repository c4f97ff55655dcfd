"""The run on a terminal: a live display on a real one, plain lines elsewhere, findings as they come on both."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from staticfire.harness.log import safe
from staticfire.harness.matrix.cell import Cell
from staticfire.harness.report.progress import Progress
from staticfire.harness.report.text import clean, evidence, headline
from staticfire.harness.run.record import duration, rerun_command
from staticfire.harness.run.result import GOOD, CellResult

PLAIN_SECONDS = 10.0
"""Between two lines of progress where there is no terminal."""

EVIDENCE_LINES = 40
BAR_WIDTH = 40


class OutputConsole(Console):
    """A console on standard output that goes silent when its reader is gone; the run goes on for its reports."""

    def on_broken_pipe(self) -> None:
        """Send the rest nowhere."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class RunView:
    """Shows a run. Use as a context manager around it.

    Args:
        console: Where to.
        file: The matrix as the user named it, for the rerun command.
        kernel_backend: What the user asked for, for the same command.
        quiet: Findings only.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        console: Console,
        file: str,
        *,
        kernel_backend: str | None = None,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._file = file
        self._kernel_backend = kernel_backend
        self._quiet = quiet
        self._clock = clock
        self._progress = Progress(0, clock())
        self._spoke = clock()
        live = console.is_terminal and console.file.isatty() and not console.is_dumb_terminal and not quiet
        self._live = Live(console=console, auto_refresh=False, transient=True) if live else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    @property
    def done(self) -> int:
        """Cells that got their verdict in this sitting."""
        return self._progress.done

    @property
    def left(self) -> int:
        """Cells that have none yet."""
        return self._progress.total - self._progress.done

    def opened(self, todo: int, done: Sequence[CellResult], set_aside: Path | None) -> None:
        """Say what is about to happen."""
        self._progress = Progress(todo, self._clock())
        if set_aside is not None:
            self._say(f"the earlier run is kept in {set_aside}")
        if done:
            findings = sum(result.verdict not in GOOD for result in done)
            self._say(f"resumed: {len(done)} cells have a verdict ({findings} findings), {todo} to go")
        elif not self._live:
            self._say(f"{todo} cell{'s' * (todo != 1)} to run")

    def started(self, cell: Cell, worker: int) -> None:
        """A worker began a cell."""
        self._progress.start(worker, cell.id, self._clock())

    def finished(self, result: CellResult) -> None:
        """Print a finding; count the rest."""
        self._progress.finish(result)
        if result.verdict not in GOOD:
            self._print(finding_text(result, rerun_command(self._file, result.id, self._kernel_backend)))

    def tick(self) -> None:
        """Refresh the display, or say something now and then."""
        now = self._clock()
        if self._live:
            self._live.update(self._display(now), refresh=True)
        elif now - self._spoke >= PLAIN_SECONDS:
            self._spoke = now
            self._say(self._progress.line(now))

    def _display(self, now: float) -> RenderableType:
        running = [
            Text(f"  worker {worker}: {clean(name)} {duration(now - since)}", style="dim", no_wrap=True)
            for worker, (name, since) in sorted(self._progress.running.items())
        ]
        filled = BAR_WIDTH * self._progress.done // max(1, self._progress.total)
        bar = Text.assemble(("#" * filled, "green"), ("." * (BAR_WIDTH - filled), "dim"))
        return Group(bar, Text(self._progress.line(now)), *running)

    def _say(self, line: str) -> None:
        if not self._quiet:
            self._print(Text(safe(line)))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True)


def finding_text(result: CellResult, rerun: str) -> Text:
    """A finding as it is printed: what, the evidence, the command that reruns it."""
    lines = safe(clean(evidence(result, brief=True))).splitlines()
    if len(lines) > EVIDENCE_LINES:
        lines = [*lines[:EVIDENCE_LINES], f"... {len(lines) - EVIDENCE_LINES} more lines in the report"]
    text = Text()
    text.append(f"{safe(clean(result.id))}\n", style="bold")
    text.append(f"  {safe(clean(headline(result)))}\n", style="red")
    for line in lines:
        text.append(f"  {line}\n")
    text.append(f"  rerun: {safe(clean(rerun))}")
    return text
