"""`staticfire kernels`: compile every kernel for GPUs that are not here, and hold each to its budget."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.colour import is_dumb
from staticfire.harness.cli.paths import NamedPath
from staticfire.harness.cli.streams import echo, echo_json, echo_raw, write_file
from staticfire.harness.files import default_cache_dir

if TYPE_CHECKING:
    from staticfire.harness.budgets.report import Request

FORMATS = ("text", "json", "sarif", "buildkite")
EXIT_CODES = """Exit codes: 0 fine; 1 with --check, a kernel that is not within its budget, or with --update, one that
no budget is written for without a reason; 2 an unknown name, a broken file, no Triton."""


def _shapes(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in (part for whole in texts for part in whole.split(",")):
        name, equals, value = (piece.strip() for piece in text.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"expected NAME=VALUE, such as tokens=4096, got {text!r}")
        if name in given:
            raise click.BadParameter(f"{name} is given twice")
        given[name] = value
    return given


@click.command(epilog=EXIT_CODES)
@click.option("--check", is_flag=True, help="Exit with 1 if a kernel is not within its budget.")
@click.option("--update", is_flag=True, help="Write what the kernels take now as their budgets.")
@click.option("--op", "ops", multiple=True, metavar="OP", help="Only this op; may be repeated.")
@click.option("--target", "targets", multiple=True, metavar="TARGET", help="Only for this GPU, such as sm_90.")
@click.option(
    "--format",
    "shape_of_output",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to print (JSON schemas: docs/schemas/kernels.json, roofline.json).",
)
@click.option("--roofline", metavar="DEVICE", help="Print the least time of ops on a device instead; needs --shape.")
@click.option(
    "--shape",
    multiple=True,
    callback=_shapes,
    metavar="NAME=VALUE,…",
    help="Shapes for --roofline, such as tokens=4096,hidden=4096.",
)
@click.option("--budgets", type=NamedPath(), help="File of budgets [default: the one for the installed Triton].")
@click.option("--cache", type=NamedPath(), help="Folder of remembered results.")
@click.option("-j", "processes", type=click.IntRange(min=1), default=2, show_default=True, help="Compiling processes.")
def kernels(
    check: bool,
    update: bool,
    ops: tuple[str, ...],
    targets: tuple[str, ...],
    shape_of_output: str,
    roofline: str | None,
    shape: dict[str, str],
    budgets: Path | None,
    cache: Path | None,
    processes: int,
) -> int:
    """Compile the kernels for six GPUs, none of which has to be here, and compare what they take with their budgets."""
    from staticfire.harness.budgets.report import Request

    if sum((check, update, roofline is not None)) > 1:
        raise click.UsageError("--check, --update and --roofline exclude each other.")
    if roofline is not None:
        if targets or budgets or cache:
            raise click.UsageError("--target, --budgets and --cache are for compiling, not for --roofline.")
        return _roofline(roofline, ops, shape, shape_of_output)
    if shape:
        raise click.UsageError("--shape is for --roofline.")
    folder = (cache or default_cache_dir()) / "kernels"
    return _compile(
        Request(ops, targets, budgets, folder, processes, _progress), shape_of_output, check=check, update=update
    )


def _compile(request: "Request", shape: str, *, check: bool, update: bool) -> int:
    from staticfire.harness.budgets.registry import FORMATS as RENDER
    from staticfire.harness.budgets.report import gather, renewed

    with _ended_by_signals():
        report, budgets = gather(request, must=check)
    if update:
        text, wrong = renewed(report, budgets)
        if wrong:
            echo("\n".join([f"{report.budgets}: not updated:", *(f"  {finding}" for finding in wrong)]))
            echo("Mend them, or write an allowance with its reason into the file (docs/kernels.md).")
            return FINDINGS
        write_file(report.budgets, text, "--budgets")
        echo(f"{report.budgets}: {len(report.rows)} budgets written, {len(report.stale)} dropped.")
        return OK
    (echo if shape == "text" else echo_raw)(RENDER[shape](report), nl=False)
    return FINDINGS if check and report.findings else OK


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """End by an exception where a signal would end the process at once and leave compilers and their files behind.

    Outside the main thread Python allows no handlers, and nothing changes.
    """
    here = threading.current_thread() is threading.main_thread()
    previous = {
        number: signal.signal(number, _terminated)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if here and signal.getsignal(number) == signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _terminated(number: int, _: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # a second one would end the taking down
    raise SystemExit(128 + number)


def _roofline(device: str, ops: Sequence[str], shape: dict[str, str], output: str) -> int:
    from staticfire.harness.budgets import roofline

    if output not in {"text", "json"}:
        raise click.UsageError("--roofline is printed as text or json.")
    ceilings, found = roofline.lines(device, ops, shape)
    if output == "json":
        echo_json(json.dumps(roofline.document(ceilings, found), indent=2))
    else:
        echo(roofline.text(ceilings, found), nl=False)
    return OK


def _progress(done: int, total: int) -> None:
    """Count on standard error, where somebody looks at it."""
    if sys.stderr.isatty() and not is_dumb(os.environ):
        echo_raw(f"\r{done} of {total} compiled", err=True, nl=done == total)
