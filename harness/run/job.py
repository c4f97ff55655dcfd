"""The contract between the runner and what it runs: a *job* is an importable function that judges one cell.

The runner knows nothing about engines or oracles. It hands a job's name (`package.module:function`) to its workers,
each of which imports it once; whatever the import costs is paid before the first cell's time starts.
"""

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, cast

import msgspec

from staticfire.harness.matrix.cell import Cell
from staticfire.harness.run.result import VERDICTS, Verdict

JUDGE = "staticfire.harness.run.judged:judge_cell"
"""The job of `staticfire run`: the reference engine against its oracles."""


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a job may need besides the cell.

    Attributes:
        matrix_file: The matrix, for messages and names relative to it.
        cache_dir: Folder of checkpoints and oracle outputs; None means the default one.
    """

    matrix_file: str
    cache_dir: str | None = None


class JobResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a job returns for a cell. `detail` may hold anything; what JSON cannot hold is made readable."""

    verdict: Verdict
    rule: str | None = None
    detail: Mapping[str, Any] | None = None


class Job(Protocol):
    """A function of a cell. What it raises becomes an `error` verdict with the traceback."""

    def __call__(self, cell: Cell, context: JobContext) -> JobResult:
        """Judge one cell."""
        ...


def checked(result: object) -> JobResult:
    """Return what a job returned if it is what it should be.

    Raises:
        TypeError: It is no `JobResult`, or has no such verdict.
    """
    if not isinstance(result, JobResult):
        raise TypeError(f"the job returned {type(result).__name__}, not JobResult")
    if result.verdict not in VERDICTS:
        raise TypeError(f"the job returned the verdict {result.verdict!r}, not one of: {', '.join(VERDICTS)}")
    return result


def load_job(name: str) -> Job:
    """Import the job `package.module:function`.

    Raises:
        ImportError: There is no such module or function.
    """
    module, _, function = name.partition(":")
    try:
        return cast("Job", getattr(importlib.import_module(module), function))
    except AttributeError as error:
        raise ImportError(f"no function {function!r} in the module {module!r}") from error
