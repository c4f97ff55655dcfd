"""`staticfire check PATH…`: which configurations an engine refuses or rewrites, why, where, and what mends them."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from staticfire.harness.check.base import Report
from staticfire.harness.check.engines import ENGINES, Asked, open_engine
from staticfire.harness.check.formats.registry import FORMATS
from staticfire.harness.check.question import Engine
from staticfire.harness.cli import FINDINGS, OK, USAGE
from staticfire.harness.cli.streams import echo, echo_json, echo_raw, echo_xml, need_folder, write_file

EXIT_CODES: Final = """Exit codes: 0 no certain finding; 1 a certain finding, or fewer sites judged than --min-judged;
2 the check cannot be done as asked: no engine, or no site could be judged; 3 a bug of ours."""


class _Share(click.ParamType[float]):
    """A share of one hundred: `60%`, or `60`."""

    name = "N%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read a share."""
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%?", str(value).strip())
        if not found or float(found.group(1)) > 100:
            self.fail(f"{value!r} is no share of sites: a number from 0 to 100, such as 60%.", param, ctx)
        return float(found.group(1))


@click.command(epilog=EXIT_CODES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="PATH...")
@click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    default="vllm",
    show_default=True,
    help="Whose word counts: an installed vLLM, or our own engine.",
)
@click.option("--engine-python", metavar="PY", help="Interpreter that has the engine [default: this one].")
@click.option(
    "--engine-source",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Sources of the engine, built or not, in place of what the interpreter has installed.",
)
@click.option(
    "--engine-wait",
    type=click.FloatRange(min=1, max=3600),
    default=20,
    show_default=True,
    metavar="SECONDS",
    help="How long the interpreter may take to say which engine it has.",
)
@click.option("--device", default="h100-80gb", show_default=True, help="Name of a device in matrices/devices.toml.")
@click.option(
    "--format", "form", type=click.Choice(list(FORMATS)), default="text", show_default=True, help="What to print."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the report to a file instead.")
@click.option("--baseline", "baseline_file", type=click.Path(dir_okay=False, path_type=Path), help="Known findings.")
@click.option("--update-baseline", is_flag=True, help="Write a first baseline, or take out of it what is gone.")
@click.option("--redundant", is_flag=True, help="Also report typed values that change nothing.")
@click.option("--all", "every_layer", is_flag=True, help="Also report what becomes of the defaults of wrappers.")
@click.option("--min-judged", type=_Share(), metavar="N%", help="Exit 1 if a smaller share of the sites was judged.")
@click.option("--no-cache", is_flag=True, help="Read every file and ask every question anew.")
@click.option(
    "--model-configs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of model configurations: OWNER/NAME/config.json.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1, max=64), help="Processes [default: one a core, at most 2].")
def check(
    paths: tuple[Path, ...],
    engine: str,
    engine_python: str | None,
    engine_source: Path | None,
    engine_wait: float,
    device: str,
    form: str,
    output: Path | None,
    baseline_file: Path | None,
    update_baseline: bool,
    redundant: bool,
    every_layer: bool,
    min_judged: float | None,
    no_cache: bool,
    model_configs: Path | None,
    jobs: int | None,
) -> int:
    """Find the configurations in PATH that an engine refuses or rewrites, without a GPU.

    PATH is a file or a folder: Python (tests, examples, benchmarks), shell scripts, YAML. Nothing in it is imported
    or run. A finding is certain if the engine says so for every value that is open; other findings are possible, and
    do not fail the run.
    """
    from staticfire.harness.check import run

    if update_baseline and baseline_file is None:
        raise click.UsageError("--update-baseline needs --baseline FILE.")
    if engine_python is not None and engine != "vllm":
        raise click.UsageError(f"--engine-python is for --engine vllm; the engine asked is {engine}.")
    need_folder(output, "--output")
    if update_baseline:
        need_folder(baseline_file, "--baseline")
    if engine_source is not None and engine != "vllm":
        raise click.UsageError(f"--engine-source is for --engine vllm; the engine asked is {engine}.")
    jobs = jobs or min(2, os.cpu_count() or 1)
    asked = Asked(
        device=device,
        python=engine_python,
        model_configs=model_configs,
        suite=paths,
        processes=jobs,
        cache=not no_cache,
        source=engine_source,
        wait=engine_wait,
        say=lambda line: echo(f"staticfire: {line}", err=True),
    )
    known = _known(baseline_file, update_baseline)
    answering = open_engine(engine, asked)
    try:
        report = run.check(_scan(asked, answering), answering, run.Options(redundant, every_layer))
    finally:
        answering.close()
    if update_baseline and baseline_file is not None:
        report = _update(report, paths, baseline_file)
    else:
        report = run.accept(report, paths, known)
    _print(report, form, output)
    return _exit_code(report, min_judged)


def _known(file: Path | None, update: bool) -> Any:
    from staticfire.harness.check import baseline

    return None if file is None or (update and not file.exists()) else baseline.load(file)


def _update(report: Report, paths: tuple[Path, ...], file: Path) -> Report:
    """Write the baseline: all findings if there is none yet, else what is left of it."""
    from staticfire.harness.check import baseline, run

    open_ = run.accept(report, paths, None)
    now = baseline.count([one for one in open_.findings if one.facts.code < "SC9"])
    kept = baseline.shrunk(baseline.load(file), now) if file.exists() else now
    write_file(file, baseline.text(kept), "--baseline")
    return run.accept(report, paths, kept)


def _scan(asked: Asked, answering: Engine) -> Any:
    from staticfire.harness.check.reading import scan_config
    from staticfire.harness.scan.scan import scan

    return scan(asked.suite, config=scan_config(asked, answering.versions, answering.constants))


_SAY: Final[Mapping[str, Callable[..., None]]] = {
    "text": echo,
    "json": echo_json,
    "sarif": echo_json,
    "junit": echo_xml,
    "github": echo_raw,
    "buildkite": echo_raw,
}
"""Format -> how it is printed where a log may show it; the last two are commands and markup by themselves."""


def _print(report: Report, form: str, output: Path | None) -> None:
    """Write the report, and the last line where a person sees it."""
    chosen = FORMATS[form]
    text = chosen.render(report)
    if output is not None:
        write_file(output, click.unstyle(text), "--output")
    else:
        _SAY[form](text.encode("utf-8", "backslashreplace").decode("utf-8"), nl=False)
    if output is not None:
        echo(report.last_line)
    elif not chosen.LAST_LINE:
        sys.stdout.flush()
        echo(report.last_line, err=True)


def _exit_code(report: Report, least: float | None) -> int:
    coverage = report.coverage
    if not coverage.judged:
        reasons = (reason.partition("not judged: ")[2] for reason in coverage.by_reason)
        why = next(filter(None, reasons), "no site that constructs an engine was found")
        echo(f"Error: nothing was judged: {why}.", err=True)
        return USAGE
    share = 100 * coverage.judged / coverage.sites
    if least is not None and share < least:
        echo(f"Error: {share:.1f} % of the sites were judged; --min-judged asks for {least:g} %.", err=True)
        return FINDINGS
    return FINDINGS if report.certain else OK
