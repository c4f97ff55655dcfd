"""What the verbs that take a model and the flags of an engine have in common."""

from typing import Any, Final

import click

from staticfire.harness.cli.flags import Parsed, parse
from staticfire.harness.errors import InputError

SETTINGS: Final[dict[str, Any]] = {"ignore_unknown_options": True, "allow_interspersed_args": True}
"""Context settings of such a verb: what click does not know is a flag of the engine."""


class EngineCommand(click.Command):
    """A verb that takes a model and the engine's flags; lists them below its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Show every flag that the engine implements; the other known ones are explained when used."""
        from staticfire.engine.config.typed import CHOICES, Typed
        from staticfire.harness.cli.flags import flag, kinds

        rows = []
        for name in Typed.model_fields:
            kind = kinds()[name]
            spelled = f"{flag(name)} / {flag(name, False)}" if kind == "flag" else f"{flag(name)} {kind.upper()}"
            choices = CHOICES.get(name, ())
            shown = ", ".join(choices[:6]) + (", …" if len(choices) > 6 else "")
            rows.append((spelled, shown))
        with formatter.section("Engine flags (every other flag of vLLM is known, too)"):
            formatter.write_dl(rows)


def read(verb: str, args: tuple[str, ...], ours: tuple[str, ...]) -> tuple[str, Parsed]:
    """Read the model and the engine's flags.

    Args:
        verb: For messages.
        args: What click left over.
        ours: Options of the verb itself, for the nearest name.

    Returns:
        The one model that is named, and everything that was typed.

    Raises:
        InputError: Flags that cannot be read; all of them at once.
        UsageError: No model is named, or several are.
    """
    parsed = parse(args, ours)
    if parsed.faults:
        raise InputError("\n".join(parsed.faults))
    if not parsed.positional:
        raise click.UsageError(f"Name a model: staticfire {verb} MODEL [--flag value …].")
    if len(parsed.positional) > 1:
        raise click.UsageError(
            f"One model at a time; what is {parsed.positional[1]!r}? "
            "(A boolean flag takes no value: --enable-x or --no-enable-x.)"
        )
    return parsed.positional[0], parsed
