"""`staticfire start MODEL --flag value …`: start engines, show what became of every value, serve their metrics."""

import json
import select
import signal
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.engine_command import SETTINGS, EngineCommand, read
from staticfire.harness.cli.streams import echo, echo_json
from staticfire.harness.run.errors import Interrupted
from staticfire.harness.run.signals import StopSignals

if TYPE_CHECKING:
    from staticfire.harness.start.run import Started

SCHEMA_VERSION = 1
OURS = ("--metrics-port", "--metrics-host", "--json")


@click.command(cls=EngineCommand, name="start", context_settings=SETTINGS, options_metavar="MODEL [--flag value …]")
@click.option(
    "--metrics-port",
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port of /metrics and /health; 0 finds a free one.",
)
@click.option("--metrics-host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print what became of every value as one line of JSON (schema: docs/schemas/start.json).",
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="")
def start(metrics_port: int, metrics_host: str, as_json: bool, args: tuple[str, ...]) -> int:
    """Start engines and serve /metrics and /health until interrupted.

    MODEL is the name of a tiny model, such as jamba-tiny-grow, or a folder with a checkpoint. Flags are spelled as in
    vLLM; --data-parallel-size 2 starts two engines. Exits 0 when interrupted, 1 when no engine is left.
    """
    from staticfire.harness.start.run import started, watch

    model, parsed = read("start", args, OURS)
    previous = signal.signal(signal.SIGTERM, _terminated)
    try:
        with started(model, parsed.typed, metrics_port, metrics_host) as found, StopSignals() as stop:
            _print(found, as_json=as_json)

            def tell(index: int, why: str) -> None:
                left = found.service.alive
                echo(f"engine {index} is dead: {why}; {left} of {found.engines} left", err=True)

            def enough(seconds: float) -> bool:
                select.select([stop], [], [], seconds)
                stop.check()
                return False

            try:
                watch(found.service, tell, enough)
            except Interrupted:
                return OK
    finally:
        signal.signal(signal.SIGTERM, previous)
    echo("no engine is left", err=True)
    return FINDINGS


def _print(found: "Started", *, as_json: bool) -> None:
    if as_json:
        from staticfire.harness.start.table import as_json as row_json

        document = {
            "schema": SCHEMA_VERSION,
            "address": found.service.url,
            "values": [row_json(row) for row in found.rows],
            "views": [{"holder": view.holder, "fields": view.fields} for view in found.views()],
        }
        echo_json(json.dumps(document))
        return
    from staticfire.harness.start.text import render

    echo(render(found.rows))
    echo(f"\n{found.engines} engine{'s' if found.engines > 1 else ''} ready: {found.service.url}/metrics")


def _terminated(number: int, _: FrameType | None) -> NoReturn:
    """Give up a start: what was begun is taken down on the way out."""
    raise SystemExit(128 + number)
