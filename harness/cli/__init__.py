"""The command `staticfire`: verbs imported when they are called, one error handler, documented exit codes.

Exit codes: 0 fine, 1 findings, 2 usage (bad input), 3 our own bug, 130 interrupted.
"""

import io
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module

import click

from staticfire import __version__
from staticfire.engine.errors import EngineError
from staticfire.harness.cli.colour import wanted
from staticfire.harness.cli.streams import OutputError, echo, standard_streams
from staticfire.harness.errors import InputError

OK, FINDINGS, USAGE, BUG, INTERRUPTED = 0, 1, 2, 3, 130

VERBS: dict[str, tuple[str, str]] = {
    "annotate": ("staticfire.harness.cli.annotate:annotate", "Failures of JUnit files by root cause, for Buildkite."),
    "check": ("staticfire.harness.cli.check:check", "Find configurations that an engine refuses, before a GPU does."),
    "explain": ("staticfire.harness.cli.explain:explain", "How one configuration resolves, and why it is refused."),
    "kernels": ("staticfire.harness.cli.kernels:kernels", "Compile kernels for absent GPUs; hold them to budgets."),
    "matrix": ("staticfire.harness.cli.matrix:matrix", "List the cells of a matrix with their verdicts."),
    "models": ("staticfire.harness.cli.models:models", "List the models; make the checkpoint of a tiny one."),
    "pipeline": ("staticfire.harness.cli.pipeline:pipeline", "A Buildkite pipeline of matrices and suites, or run it."),
    "rule": ("staticfire.harness.cli.rule:rule", "Print the page of one rule, such as SF101."),
    "rules": ("staticfire.harness.cli.rules:rules", "List every rule, or compare them with an engine."),
    "run": ("staticfire.harness.cli.run:run", "Run a matrix on the engine against its oracles."),
    "start": ("staticfire.harness.cli.start:start", "Start engines; serve their metrics until interrupted."),
    "sync": ("staticfire.harness.cli.sync:sync", "Does everyone hold what the engine settled on at run time?"),
    "triage": ("staticfire.harness.cli.triage:triage", "Group the failures of a finished build by root cause."),
}
"""Verb -> (`module:command`, help line). The help line stands here so that `--help` imports no verb."""


class _Verbs(click.Group):
    """A group that imports a verb's module when the verb is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Every verb, in alphabetical order."""
        return sorted(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        """Import the verb; None for an unknown one."""
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or name the nearest one."""
        if args and not args[0].startswith("-") and args[0] not in VERBS:
            near = get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such verb {args[0]!r}.{hint} Verbs: {', '.join(sorted(VERBS))}.", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """List the verbs from the table alone."""
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, VERBS[verb][1]) for verb in sorted(VERBS)])


@click.group(
    cls=_Verbs,
    name="staticfire",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 fine, 1 findings, 2 usage, 3 a bug of ours, 130 interrupted.",
)
@click.version_option(__version__, prog_name="staticfire")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Prove configurations of a hybrid inference engine before they cost a GPU."""
    _ = debug  # read from the arguments by the error handler, which may run before parsing ends


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Args:
        argv: Arguments after the program's name; those of the process when None.

    Returns:
        The exit code: 0 fine, 1 findings, 2 usage, 3 our bug, 130 interrupted.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    with standard_streams():
        try:
            colour = wanted(os.environ)
            result = cli.main(args=args, prog_name="staticfire", standalone_mode=False, color=colour)
            sys.stdout.flush()
        except BaseException as error:  # noqa: BLE001 -- the one place where every error becomes an exit code
            return _exit_code(error, args)
    return result if isinstance(result, int) else OK


def _exit_code(error: BaseException, args: list[str]) -> int:
    """Turn any error into a message on stderr and an exit code."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case SystemExit(__context__=OSError() as met):
            return _exit_code(met, args)  # click met it first
        case SystemExit():
            return error.code if isinstance(error.code, int) else (OK if error.code is None else USAGE)
        case click.Abort() | KeyboardInterrupt():
            _say("\nInterrupted.")
            return INTERRUPTED
        case click.ClickException():
            shown = io.StringIO()
            error.show(shown)
            _say(shown.getvalue().rstrip("\n"))
            return USAGE
        case EngineError() | InputError() | OutputError():
            _debug(error, args)
            _say(f"Error: {error}")
            return USAGE
        case OSError():
            _debug(error, args)
            where = f"{error.filename}: " if error.filename is not None else ""
            _say(f"Error: {where}{error.strerror or error}")
            return USAGE
        case _:
            return _our_bug(error, args)


def _our_bug(error: BaseException, args: list[str]) -> int:
    _debug(error, args)
    again = "" if "--debug" in args else f" Traceback: staticfire --debug {shlex.join(args)}"
    _say(f"This is a bug of Staticfire, not of your input: {type(error).__name__}: {error}.{again}")
    return BUG


def _debug(error: BaseException, args: list[str]) -> None:
    if args[:1] == ["--debug"]:
        import traceback

        _say("".join(traceback.format_exception(error)))


def _say(text: str) -> None:
    """Say it on standard error; where that cannot be written either, the exit code is all that is left."""
    with suppress(OSError):
        echo(text, err=True)
