"""`staticfire rule CODE` prints the page of a rule."""

from difflib import get_close_matches

import click

from staticfire.harness.cli.streams import echo


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
    echo(page(found))
