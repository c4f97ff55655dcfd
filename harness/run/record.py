"""A run as its reports see it. Plain values; imports neither the engine nor any renderer."""

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from staticfire.harness.run.identity import Identity
from staticfire.harness.run.result import GOOD, VERDICTS, CellResult, Verdict


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A finished run, or the finished part of one.

    Attributes:
        file: The matrix as the user named it.
        identity: Matrix, code and versions that the verdicts belong to.
        started: When the run began, ISO 8601 in UTC; a resumed run keeps the first start.
        seconds: Wall time of the last sitting.
        selected: Cells that were to be run.
        axes: Axis names in the matrix's order.
        results: Verdicts in the matrix's order.
    """

    file: str
    identity: Identity
    started: str
    seconds: float
    selected: int
    axes: Sequence[str]
    results: Sequence[CellResult]

    @property
    def complete(self) -> bool:
        """Every selected cell has a verdict."""
        return len(self.results) == self.selected

    @property
    def summary(self) -> Mapping[Verdict, int]:
        """Cells per verdict, every verdict named."""
        counts = Counter(result.verdict for result in self.results)
        return {verdict: counts[verdict] for verdict in VERDICTS}

    @property
    def findings(self) -> Sequence[CellResult]:
        """Cells that are neither passed nor refused as expected."""
        return [result for result in self.results if result.verdict not in GOOD]

    def rerun(self, cell_id: str) -> str:
        """The command that runs just this cell."""
        return rerun_command(self.file, cell_id, self.identity.kernel_backend)


def rerun_command(file: str, cell_id: str, kernel_backend: str | None = None) -> str:
    """The command that runs one cell of a matrix, quoted for a shell."""
    on = ["--kernel-backend", kernel_backend] if kernel_backend else []
    return shlex.join(["staticfire", "run", file, "--cell", cell_id, *on])


def duration(seconds: float) -> str:
    """`8.4s`, `2m41s` or `1h02m`."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    minutes = round(seconds / 60)
    return f"{minutes // 60}h{minutes % 60:02d}m"


def summary_line(record: RunRecord, where: str | None) -> str:
    """`120 cells: 96 passed, 20 refused as expected, 4 failed in 2m41s - report in staticfire-report/`."""
    done = len(record.results)
    cells = f"{done} cell{'' if done == 1 else 's'}" if record.complete else f"{done} of {record.selected} cells"
    counts = ", ".join(f"{count} {verdict}" for verdict, count in record.summary.items() if count)
    report = f" - report in {where}" if where else ""
    return f"{cells}: {counts or 'no verdicts'} in {duration(record.seconds)}{report}"
