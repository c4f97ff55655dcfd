"""`staticfire sync`: does everyone hold what the engine settled on, asked of an engine that runs or of its source?"""

import json
import shutil
import sys
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.engine_command import SETTINGS, EngineCommand, read
from staticfire.harness.cli.flags import flags
from staticfire.harness.cli.streams import echo, echo_json
from staticfire.harness.errors import InputError
from staticfire.harness.sync.compare import audit
from staticfire.harness.sync.registry import ENGINES, make_engine
from staticfire.harness.sync.text import render

OURS = ("--engine", "--engine-python", "--contract", "--examples", "--seconds", "--accept", "--format")
OF_CONTRACT: Final = ("examples", "seconds", "accept")
"""Options that mean nothing without --contract."""


@click.command(
    cls=EngineCommand,
    name="sync",
    context_settings=SETTINGS,
    options_metavar="PATH | --engine NAME MODEL [--flag value …]",
)
@click.option("--engine", type=click.Choice(list(ENGINES)), help="Which engine to start and look at.")
@click.option("--engine-python", metavar="PYTHON", help="The interpreter that has vLLM, for --engine vllm.")
@click.option(
    "--contract",
    is_flag=True,
    help="Start no engine and name no model: hold the engine's own ready response, and the code that applies it, to "
    "properties, by examples. Needs no GPU.",
)
@click.option(
    "--examples",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    help="With --contract: examples of each property and field.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 86_400),
    default=300,
    show_default=True,
    help="With --contract: when to stop trying; what was not tried until then is said.",
)
@click.option(
    "--accept",
    multiple=True,
    metavar="PROPERTY:FIELD=REASON",
    help="With --contract: a counterexample that is meant to be. Can be given several times.",
)
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to print (JSON schemas: sync.json, sync-source.json, sync-contract.json in docs/schemas).",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="")
@click.pass_context
def sync(
    ctx: click.Context,
    engine: str | None,
    engine_python: str | None,
    contract: bool,
    examples: int,
    seconds: float,
    accept: tuple[str, ...],
    shape: str,
    args: tuple[str, ...],
) -> int:
    """Start an engine and compare what everyone in it believes: front end, engine cores, workers, metrics.

    MODEL is the name of a tiny model, such as jamba-tiny-grow, or a folder with a checkpoint. Flags are spelled as in
    vLLM and lay the engine out: --tensor-parallel-size 2 --data-parallel-size 2. Exits 1 where a value differs.

    Without --engine, PATH is a folder with an engine's source, which is read and not run: which fields of the
    configuration are written after it was copied, read in another process, and brought there by nothing?
    """
    idle = [f"--{name}" for name in OF_CONTRACT if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT]
    if engine is None:
        if contract or engine_python is not None or idle:
            raise click.UsageError("Missing option '--engine': reading source takes a folder and --format only.")
        from staticfire.harness.cli.sync_source import source

        return source(args, shape)
    if contract:
        if args:
            raise click.UsageError(f"--contract starts no engine, so it takes no model and no flags: {' '.join(args)}")
        from staticfire.harness.cli.sync_contract import contract as hold

        python = _options(engine, engine_python).get("python")
        return hold(engine, python, shape, examples=examples, seconds=seconds, accept=accept)
    if idle:
        raise click.UsageError(f"{', '.join(idle)} {'is' if len(idle) == 1 else 'are'} for --contract.")
    model, parsed = read(f"sync --engine {engine}", args, OURS)
    seen = make_engine(engine, **_options(engine, engine_python)).look(model, parsed.typed)
    found = audit(seen, " ".join([model, *flags(parsed.typed)]))
    if shape == "json":
        echo_json(json.dumps(found.as_json(), indent=2))
    else:
        echo(render(found))
    return FINDINGS if found.findings else OK


def _options(engine: str, python: str | None) -> dict[str, str]:
    """What the engine's class needs to know.

    Raises:
        InputError: There is no such interpreter.
        UsageError: The engine needs none.
    """
    if engine == "vllm":
        if python is None:
            return {"python": sys.executable}
        found = shutil.which(python)
        if found is None:
            kind = "a folder" if Path(python).is_dir() else "no program that can be run"
            raise InputError(f"--engine-python {python}: is {kind}; name the interpreter that has vLLM.")
        return {"python": str(Path(found).absolute())}  # it runs in a folder of its own; a link is a venv's, and stays
    if python is not None:
        raise click.UsageError("--engine-python is for --engine vllm.")
    return {}
