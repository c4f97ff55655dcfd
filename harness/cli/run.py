"""`staticfire run FILE`: run a matrix on the engine against its oracles, and report."""

import importlib.util
import math
import os
import tempfile
from pathlib import Path
from typing import Any

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.colour import wanted
from staticfire.harness.cli.paths import NamedPath
from staticfire.harness.cli.streams import OutputError, echo
from staticfire.harness.files import default_cache_dir
from staticfire.harness.log import safe
from staticfire.harness.matrix import load
from staticfire.harness.report.registry import FORMATS
from staticfire.harness.report.terminal import OutputConsole, RunView
from staticfire.harness.report.write import write_reports
from staticfire.harness.run import runner
from staticfire.harness.run.backends import BACKENDS, Backend, backend_of, with_backend
from staticfire.harness.run.environment import default_workers, worker_environment
from staticfire.harness.run.errors import Interrupted, ReportError, RunError, RunUsageError
from staticfire.harness.run.folder import DEFAULT
from staticfire.harness.run.identity import current_identity
from staticfire.harness.run.job import JUDGE, JobContext
from staticfire.harness.run.journal import NAME as JOURNAL
from staticfire.harness.run.record import RunRecord, summary_line
from staticfire.harness.run.runner import RunRequest
from staticfire.harness.run.select import select
from staticfire.harness.run.supervisor import Settings

TIMEOUT_SECONDS = 300.0

EXIT_CODES = """Exit codes: 0 every cell passed or was refused as expected; 1 findings, an error in a cell included;
2 the run cannot be done as asked, and nothing was executed; 3 it could not be finished or reported (a bug of ours,
workers that do not start, a full disk); 130 or 143 interrupted. Whatever the code, verdicts reached are in the
journal, and --resume goes on from there."""


class Seconds(click.FloatRange):
    """A number above 0; of NaN, which no deadline is ever past, click's own range thinks well."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of seconds."""
        seconds: float = super().convert(value, param, ctx)
        if math.isnan(seconds):
            self.fail(f"{value} is no number of seconds", param, ctx)
        return seconds


@click.command(epilog=EXIT_CODES)
@click.argument("file")
@click.option("-j", "--workers", type=click.IntRange(min=1), help="Worker processes [default: 2, or 1 on one core].")
@click.option("--cell", "cells", multiple=True, metavar="ID", help="Run just this cell; may be repeated.")
@click.option(
    "--select", "filters", multiple=True, metavar="AXIS=VALUE", help="Keep cells with this value; repeatable."
)
@click.option("--resume", is_flag=True, help="Run only the cells that have no verdict in the folder's journal.")
@click.option("--fail-fast", is_flag=True, help="Begin no cell after the first finding.")
@click.option(
    "--timeout",
    type=Seconds(),
    default=TIMEOUT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="A cell without a verdict for so long is an error.",
)
@click.option(
    "--out",
    type=NamedPath(),
    default=DEFAULT,
    show_default=True,
    help="Folder for the journal and the reports; an earlier run in it is kept under earlier/.",
)
@click.option("--cache", type=NamedPath(), help="Folder of checkpoints and oracle outputs.")
@click.option("--format", "formats", multiple=True, type=click.Choice(list(FORMATS)), help="Reports to write [all].")
@click.option(
    "--kernel-backend",
    type=click.Choice(list(BACKENDS)),
    help="Run every cell on these kernels (on a CPU, Triton's are interpreted: slow) [those of each cell].",
)
@click.option(
    "--job", default=JUDGE, metavar="MODULE:FUNCTION", help="What judges a cell, instead of engine and oracles."
)
@click.option("-q", "--quiet", is_flag=True, help="Print findings and the summary only.")
def run(
    file: str,
    workers: int | None,
    cells: tuple[str, ...],
    filters: tuple[str, ...],
    resume: bool,
    fail_fast: bool,
    timeout: float,
    out: Path,
    cache: Path | None,
    formats: tuple[str, ...],
    kernel_backend: Backend | None,
    job: str,
    quiet: bool,
) -> int:
    """Run the matrix FILE (a path, or a name such as hybrid): every cell on the engine, judged by its oracles."""
    _check_job(job)
    matrix = load(file)
    everything = with_backend(matrix.cells(), kernel_backend)
    chosen = with_backend(select(matrix, cells, filters), kernel_backend)
    if cache or job == JUDGE:
        _check_cache(cache or default_cache_dir())
    workers = min(workers or default_workers(), len(chosen))
    shown = os.fsencode(file).decode("utf-8", "replace")
    request = RunRequest(
        file=shown,
        identity=current_identity(matrix.name, matrix.digest, job, kernel_backend),
        cells=chosen,
        everything=everything,
        selective=bool(cells or filters),
        out=out,
        resume=resume,
        reports=[form.FILE for form in FORMATS.values()],
        settings=Settings(
            job=job,
            context=JobContext(matrix_file=shown, cache_dir=str(cache) if cache else None),
            workers=workers,
            timeout=timeout,
            environment=worker_environment(workers, os.environ),
            fail_fast=fail_fast,
            pool_of=backend_of,
            pools=BACKENDS,
        ),
    )
    return _run(request, formats or tuple(FORMATS), quiet=quiet)


def _run(request: RunRequest, formats: tuple[str, ...], *, quiet: bool) -> int:
    colour = wanted(os.environ)
    plain: Any = {"color_system": None} if colour is False else {}
    console = OutputConsole(highlight=False, force_terminal=colour or None, **plain)

    def publish(record: RunRecord) -> None:
        try:
            write_reports(record, request.out, [FORMATS[name] for name in formats])
        except ReportError:
            _print(console, summary_line(record, None))
            raise

    view = RunView(console, request.file, kernel_backend=request.identity.kernel_backend, quiet=quiet)
    try:
        with view:
            record = runner.run(request, view, publish)
    except Interrupted as stop:
        echo(f"\nStopped by {stop}: {view.left} cells without a verdict; go on with --resume.", err=True)
        return stop.exit_code
    except ReportError as error:
        kept = f"The verdicts are in {request.out / JOURNAL}: when that is mended, --resume writes the reports."
        echo(f"Error: {error}\n{kept}", err=True)
        return error.exit_code
    except RunError as error:
        echo(f"Error: {error}", err=True)
        return error.exit_code
    except OutputError as error:
        echo(f"Error: {str(error).rstrip('.')}; go on with --resume.", err=True)
        return RunError.exit_code
    _print(console, summary_line(record, f"{os.fspath(request.out).rstrip('/')}/"))
    return FINDINGS if record.findings else OK


def _check_cache(folder: Path) -> None:
    """Say now what every cell would fail on: checkpoints and the oracle's answers are kept there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise RunUsageError(
            f"the cache {folder}: cannot write there ({error.strerror or error}); name another folder with --cache or "
            "the variable STATICFIRE_CACHE"
        ) from error


def _print(console: OutputConsole, line: str) -> None:
    console.print(safe(line), soft_wrap=True, markup=False)


def _check_job(job: str) -> None:
    """Say now what every worker would fail on; nothing is imported for it but parent packages."""
    module, _, function = job.partition(":")
    if not (module and function):
        raise RunUsageError(f"--job {job}: must be module:function")
    if not _exists(module):
        raise RunUsageError(f"--job {job}: there is no module {module}")
    missing = [name for name in ("torch", "transformers") if not _exists(name)]
    if job == JUDGE and missing:
        raise RunUsageError(f"running cells needs {' and '.join(missing)}: pip install 'staticfire[engine]'")


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
