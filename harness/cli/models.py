"""`staticfire models`: list what a model name may be; make or find the checkpoint of a tiny one."""

from pathlib import Path

import click

from staticfire.harness.cli.paths import NamedPath
from staticfire.harness.cli.streams import echo, echo_raw

_CACHE = click.option(
    "--cache",
    "cache_dir",
    type=NamedPath(file_okay=False),
    help="Cache folder; $STATICFIRE_CACHE or ~/.cache/staticfire unless given.",
)


@click.group(invoke_without_command=True)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List the models; make or find the checkpoint of a tiny one."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


@models.command("list")
def list_models() -> None:
    """List every model by name."""
    from staticfire.harness.models import catalog

    width = max(map(len, catalog.names()))
    for name in catalog.names():
        model = catalog.load(name)
        echo(f"{name:{width}}  {'runs' if model.tiny else '    '}  {model.description}")


@models.command("make")
@click.argument("name")
@_CACHE
def make(name: str, cache_dir: Path | None) -> None:
    """Make the checkpoint of the tiny model NAME, unless it is there; print its folder."""
    from staticfire.harness.models.make import ensure

    echo_raw(str(ensure(name, cache_dir)))


@models.command("path")
@click.argument("name")
@_CACHE
def path(name: str, cache_dir: Path | None) -> None:
    """Print the folder of the tiny model NAME; exit 1 if it was not made yet."""
    from staticfire.harness.models.make import path_of

    folder = path_of(name, cache_dir)
    echo_raw(str(folder))
    if not folder.is_dir():
        raise click.exceptions.Exit(1)
