"""`staticfire rule CODE` prints the page of a rule; `staticfire rules` lists them all."""

import json
import textwrap
from difflib import get_close_matches

import click

from staticfire.engine.config.rules.base import Rule


@click.command("rule")
@click.argument("code")
def rule(code: str) -> None:
    """Print the page of one rule, by its code (SF101) or its name."""
    from staticfire.engine.config.rules.registry import BY_CODE, BY_NAME
    from staticfire.harness.cli.rule_text import page
    from staticfire.harness.errors import InputError

    found = BY_CODE.get(code.upper()) or BY_NAME.get(code.lower())
    if found is None:
        near = get_close_matches(code.upper(), BY_CODE, n=1) or get_close_matches(code.lower(), BY_NAME, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"No rule {code!r}.{hint} `staticfire rules` lists all {len(BY_CODE)}.")
    click.echo(page(found))


@click.command("rules")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: code, name, kind, summary, fields, since.")
def rules(as_json: bool) -> None:
    """List every rule of the reference engine."""
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
        click.echo(json.dumps(rows, indent=2))
        return
    width = max(len(entry.name) for entry in CATALOGUE)
    for entry in CATALOGUE:
        summary = textwrap.shorten(entry.summary, 90, placeholder="…")
        click.echo(f"{click.style(entry.code, bold=True)}  {entry.name:{width}}  {summary}")
