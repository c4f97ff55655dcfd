"""`staticfire triage FILE…`: the failures of a finished build by root cause, what mends them, what to try again."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.paths import NamedPath
from staticfire.harness.cli.streams import echo, echo_raw, write_file
from staticfire.harness.errors import InputError

if TYPE_CHECKING:
    from staticfire.harness.check.base import Report
    from staticfire.harness.triage.base import Failure, Triage


DEVICE: Final = "h100-80gb"


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@click.option(
    "--source",
    "sources",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="Check these sources for the same causes: verified repairs, and every site; repeatable.",
)
@click.option("--engine", type=click.Choice(["reference", "vllm"]), help="Who judges them [default: reference].")
@click.option("--engine-python", metavar="PY", help="Interpreter that has the engine, for --engine vllm.")
@click.option("--device", help="Name of the device that they are judged for [default: h100-80gb].")
@click.option(
    "--model-configs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of model configurations: OWNER/NAME/config.json.",
)
@click.option("--baseline", type=NamedPath(), help="An earlier build: what --format json printed, or its JUnit file.")
@click.option("--retry", type=click.Choice(["infrastructure", "all"]), default="infrastructure", show_default=True)
@click.option("--retry-plan", is_flag=True, help="Print the commands that run again what --retry says, and no more.")
@click.option("--pipeline", "pipeline_file", type=NamedPath(), help="The build's pipeline, for --format step-keys.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "buildkite", "step-keys"]),
    default="text",
    show_default=True,
    help="How to print (JSON schema: docs/schemas/triage.json).",
)
@click.option("--output", type=NamedPath(), help="Write it to a file instead.")
def triage(
    files: tuple[Path, ...],
    sources: tuple[Path, ...],
    engine: str | None,
    engine_python: str | None,
    device: str | None,
    model_configs: Path | None,
    baseline: Path | None,
    retry: str,
    retry_plan: bool,
    pipeline_file: Path | None,
    form: str,
    output: Path | None,
) -> int:
    """Group the failures in FILE (JUnit files, logs, folders of both) by root cause.

    A cause is a broken rule, a machine or network that failed, or else what the messages have in common. What a machine
    broke is worth another try, the rest is not.

    Exit codes: 0 no failure, or none of the product; 1 the product fails (with a baseline: in a new way); 2 the files
    cannot be used.
    """
    from staticfire.harness.cli.rule_facts import rule_facts
    from staticfire.harness.triage import reports
    from staticfire.harness.triage.group import triage as group

    if (form == "step-keys") != (pipeline_file is not None):
        raise click.UsageError("--format step-keys and --pipeline FILE need each other.")
    asked = {"--engine": engine, "--engine-python": engine_python, "--device": device, "--model-configs": model_configs}
    if not sources and any(asked.values()):
        given = " and ".join(name for name, value in asked.items() if value)
        raise click.UsageError(f"{given}: about sources that are checked; name some with --source.")
    if engine_python is not None and engine != "vllm":
        raise click.UsageError("--engine-python is for --engine vllm.")
    known = _baseline(baseline) if baseline is not None else None
    seen = reports.read(files)
    checked = None
    if sources:
        checked = _checked(sources, engine or "reference", engine_python, device or DEVICE, model_configs)
    found = group(seen, rule_facts, checked, known)
    text = _text(found, form, retry, retry_plan, pipeline_file)
    if output is not None:
        write_file(output, text, "--output")
    else:
        (echo if form == "text" and not retry_plan else echo_raw)(text, nl=False)
    bad = any(one.kind == "product" and one.new is not False for one in found.groups)
    return FINDINGS if bad else OK


def _text(found: "Triage", form: str, retry: str, plan: bool, pipeline_file: Path | None) -> str:
    from staticfire.harness.triage import markdown, text
    from staticfire.harness.triage.base import plural
    from staticfire.harness.triage.retry import commands, is_lost, step_keys

    again = _again(found, retry)
    if pipeline_file is not None:
        from staticfire.harness.pipeline.read import load

        keys = step_keys(again, load(pipeline_file))
        return json.dumps(list(keys)) + "\n"
    if plan:
        lost = sum(map(is_lost, again))
        if lost:
            which = f"{plural(lost, 'failure')} of these {'names' if lost == 1 else 'name'} no test and no cell"
            echo(f"staticfire: {which}: run the whole job again (--format step-keys).", err=True)
        return "".join(f"{line}\n" for line in commands(again))
    if form == "json":
        return text.document(found)
    if form == "buildkite":
        return markdown.render(found, markdown.Progress("triage", found.reports, found.reports))
    return text.render(found)


def _again(found: "Triage", retry: str) -> "tuple[Failure, ...]":
    from staticfire.harness.triage.base import retried

    if retry == "infrastructure":
        return retried(found.groups)
    return tuple(failure for group in found.groups for failure in group.failures)


def _baseline(file: Path) -> tuple[str, ...]:
    """Keys of the causes of an earlier build."""
    from staticfire.harness.cli.rule_facts import rule_facts
    from staticfire.harness.triage import reports
    from staticfire.harness.triage.group import keys
    from staticfire.harness.triage.group import triage as group

    content = file.read_bytes()
    if content.lstrip().startswith(b"<"):
        return tuple(one.key for one in group(reports.read([file]), rule_facts).groups)
    try:
        document: Any = json.loads(content)
    except ValueError as error:  # not UTF-8, too
        raise InputError(f"--baseline {file}: neither JSON nor a JUnit file: {error}.") from error
    known = keys(document) if isinstance(document, dict) and document.get("schema") == 1 else None
    if known is None:
        raise InputError(f"--baseline {file}: not what `staticfire triage --format json` prints, version 1.")
    return known


def _checked(
    sources: tuple[Path, ...], name: str, python: str | None, device: str, model_configs: Path | None
) -> "Report":
    """What an engine refuses in the sources."""
    from staticfire.harness.check import run
    from staticfire.harness.check.engines import Asked, open_engine
    from staticfire.harness.check.reading import scan_config
    from staticfire.harness.scan.scan import scan

    asked = Asked(
        device=device,
        python=python,
        model_configs=model_configs,
        suite=sources,
        processes=1,
        say=lambda line: echo(f"staticfire: {line}", err=True),
    )
    engine = open_engine(name, asked)
    try:
        return run.check(scan(sources, config=scan_config(asked, engine.versions, engine.constants)), engine)
    finally:
        engine.close()
