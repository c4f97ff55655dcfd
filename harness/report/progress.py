"""How far a run is: counts, rate, time left. Pure; the clock comes from outside."""

from dataclasses import dataclass, field

from staticfire.harness.run.record import duration
from staticfire.harness.run.result import GOOD, CellResult


@dataclass
class Progress:
    """Counts of a run on its way. Times are seconds of one monotonic clock.

    Attributes:
        total: Cells to run in this sitting.
        began: When it began.
        done: Cells with a verdict.
        findings: Those that are neither passed nor refused as expected.
        running: Worker -> (cell id, since).
    """

    total: int
    began: float
    done: int = 0
    findings: int = 0
    running: dict[int, tuple[str, float]] = field(default_factory=dict)

    def start(self, worker: int, cell_id: str, now: float) -> None:
        """A worker began a cell."""
        self.running[worker] = (cell_id, now)

    def finish(self, result: CellResult) -> None:
        """A cell has its verdict."""
        self.done += 1
        self.findings += result.verdict not in GOOD
        self.running = {worker: what for worker, what in self.running.items() if what[0] != result.id}

    def rate(self, now: float) -> float:
        """Cells a second so far; 0 before the first."""
        elapsed = now - self.began
        return self.done / elapsed if elapsed > 0 else 0.0

    def seconds_left(self, now: float) -> float | None:
        """At the rate so far; None before there is one."""
        rate = self.rate(now)
        return (self.total - self.done) / rate if rate else None

    def line(self, now: float) -> str:
        """`34/120 done, 1 finding, 0.9 cells/s, about 1m36s left`."""
        left = self.seconds_left(now)
        findings = "no findings" if not self.findings else f"{self.findings} finding{'s' * (self.findings > 1)}"
        speed = f"{self.rate(now):.2g} cells/s" if self.done else "starting"
        rest = f", about {duration(left)} left" if left else ""
        return f"{self.done}/{self.total} done, {findings}, {speed}{rest}"
