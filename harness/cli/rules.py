"""`staticfire rules` lists every rule; `staticfire rules --against ENGINE` compares them with an installed engine."""

import json
import os
import textwrap

import click

from staticfire.engine.config.rules.base import Rule
from staticfire.harness.cli.streams import echo, echo_json


@click.command("rules", epilog="Exit codes: 0 fine, 1 a disagreement that no row of the table explains, 2 usage.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the list as JSON: code, name, kind, summary, fields, since."
)
@click.option(
    "--against", type=click.Choice(["vllm"]), help="Compare with an installed engine over random configurations."
)
@click.option("--engine-python", metavar="PY", help="Interpreter that has the engine [default: this one].")
@click.option("--device", default="h100-80gb", show_default=True, help="Name of a device in matrices/devices.toml.")
@click.option(
    "--examples", type=click.IntRange(min=1, max=1_000_000), default=1500, show_default=True, help="How many to draw."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the draw.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="What to print."
)
@click.option("--no-cache", is_flag=True, help="Ask the engine every question anew.")
@click.option("-j", "--jobs", type=click.IntRange(min=1, max=64), help="Processes [default: one a core, at most 2].")
@click.pass_context
def rules(
    ctx: click.Context,
    as_json: bool,
    against: str | None,
    engine_python: str | None,
    device: str,
    examples: int,
    seed: int,
    form: str,
    no_cache: bool,
    jobs: int | None,
) -> int:
    """List every rule of the reference engine, or compare them with an installed engine.

    With --against, configurations are drawn over the keywords that both know, and both are asked: do they accept, is
    there room, and what does each value become? A disagreement is shown with its smallest example.
    """
    if against is None:
        given = [
            name
            for name in ("engine_python", "device", "examples", "seed", "form", "no_cache", "jobs")
            if _given(ctx, name)
        ]
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-').replace('form', 'format')} needs --against ENGINE.")
        _list(as_json)
        return 0
    if as_json:
        raise click.UsageError("--json lists the rules; with --against, write --format json.")
    return _compare(against, engine_python, device, examples, seed, form, not no_cache, jobs)


def _given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def _compare(
    engine: str, python: str | None, device: str, examples: int, seed: int, form: str, cache: bool, jobs: int | None
) -> int:
    from staticfire.harness.cli.flags import flags
    from staticfire.harness.differential import report
    from staticfire.harness.differential.explained import table
    from staticfire.harness.differential.run import run
    from staticfire.harness.models import devices
    from staticfire.harness.probe.registry import Options, open_probe

    def say(line: str) -> None:
        echo(f"staticfire: {line}", err=True)

    target = devices.find(device)
    processes = jobs or min(2, os.cpu_count() or 1)
    probe = open_probe(engine, Options(target, python, cache, processes, question_limit=300, say=say))
    try:
        result = run(probe, target, examples=examples, seed=seed, rows=table(), say=say)
    finally:
        probe.close()
    document = report.document(result, flags)
    if form == "json":
        echo_json(json.dumps(document, indent=2))
    else:
        echo(report.text(result, flags))
    return 1 if result.groups else 0


def _list(as_json: bool) -> None:
    from staticfire.engine.config.rules.registry import CATALOGUE

    if as_json:
        rows = [
            {
                "code": entry.code,
                "name": entry.name,
                "kind": "refuse" if isinstance(entry, Rule) else "rewrite",
                "summary": entry.summary,
                "fields": list(entry.fields),
                "since": entry.since,
            }
            for entry in CATALOGUE
        ]
        echo_json(json.dumps(rows, indent=2))
        return
    width = max(len(entry.name) for entry in CATALOGUE)
    for entry in CATALOGUE:
        summary = textwrap.shorten(entry.summary, 90, placeholder="…")
        echo(f"{click.style(entry.code, bold=True)}  {entry.name:{width}}  {summary}")
