"""`staticfire sync PATH`: which values that are settled at run time never leave their process, by source."""

import json
from pathlib import Path

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.streams import echo, echo_json


def source(args: tuple[str, ...], shape: str) -> int:
    """Audit a source tree and print what was found.

    Args:
        args: What is not an option: one folder.
        shape: `text` or `json`.

    Raises:
        InputError: The folder holds no engine.
        UsageError: No folder is named, or several, or a flag of an engine.
    """
    from staticfire.harness.sync.source.audit import audit
    from staticfire.harness.sync.source.text import render

    if len(args) != 1 or args[0].startswith("-"):
        raise click.UsageError(
            "Without --engine, name one folder with an engine's source: staticfire sync PATH. "
            "To start an engine: staticfire sync --engine NAME MODEL."
        )
    if not Path(args[0]).is_dir():
        raise click.UsageError(
            f"No folder {args[0]!r}. Without --engine, an engine's source is read; "
            "to start an engine, name it: --engine."
        )
    found = audit(Path(args[0]))
    if shape == "json":
        echo_json(json.dumps(found.as_json(), indent=2))
    else:
        echo(render(found))
    return FINDINGS if found.findings else OK
