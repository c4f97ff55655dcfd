"""`staticfire sync --engine NAME MODEL --flag value …`: does everyone hold what the engine settled on?"""

import json
import sys

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.engine_command import SETTINGS, EngineCommand, read
from staticfire.harness.cli.flags import flags
from staticfire.harness.sync.compare import audit
from staticfire.harness.sync.registry import ENGINES, make_engine
from staticfire.harness.sync.text import render

OURS = ("--engine", "--engine-python", "--format")


@click.command(
    cls=EngineCommand, name="sync", context_settings=SETTINGS, options_metavar="--engine NAME MODEL [--flag value …]"
)
@click.option("--engine", type=click.Choice(list(ENGINES)), required=True, help="Which engine to start and look at.")
@click.option("--engine-python", metavar="PYTHON", help="The interpreter that has vLLM, for --engine vllm.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print (JSON schema: docs/schemas/sync.json).",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="")
def sync(engine: str, engine_python: str | None, shape: str, args: tuple[str, ...]) -> int:
    """Start an engine and compare what everyone in it believes: front end, engine cores, workers, metrics.

    MODEL is the name of a tiny model, such as jamba-tiny-grow, or a folder with a checkpoint. Flags are spelled as in
    vLLM and lay the engine out: --tensor-parallel-size 2 --data-parallel-size 2. Exits 1 where a value differs.
    """
    model, parsed = read("sync", args, OURS)
    seen = make_engine(engine, **_options(engine, engine_python)).look(model, parsed.typed)
    found = audit(seen, " ".join([model, *flags(parsed.typed)]))
    click.echo(json.dumps(found.as_json(), indent=2) if shape == "json" else render(found))
    return FINDINGS if found.findings else OK


def _options(engine: str, python: str | None) -> dict[str, str]:
    """What the engine's class needs to know."""
    if engine == "vllm":
        return {"python": python or sys.executable}
    if python is not None:
        raise click.UsageError("--engine-python is for --engine vllm.")
    return {}
