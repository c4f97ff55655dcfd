"""`staticfire annotate PATH…`: the failures of JUnit files by root cause, as an annotation of a Buildkite build."""

import subprocess
from pathlib import Path

import click

from staticfire.harness.cli import OK
from staticfire.harness.cli.paths import NamedPath
from staticfire.harness.cli.streams import echo, echo_raw, write_file

SECONDS = 60


def _context(_: click.Context, __: click.Parameter, text: str) -> str:
    from staticfire.harness.pipeline.limits import ANNOTATION_CONTEXT_LENGTH

    if not 0 < len(text) <= ANNOTATION_CONTEXT_LENGTH:
        raise click.BadParameter(f"a context has 1 to {ANNOTATION_CONTEXT_LENGTH} characters, this has {len(text)}")
    return text


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--context", default="staticfire", show_default=True, callback=_context, help="One for each matrix.")
@click.option("--title", help="What the heading says [default: the context].")
@click.option(
    "--expect", type=click.IntRange(min=1), default=1, show_default=True, help="Reports that should be there."
)
@click.option("--final", is_flag=True, help="No more will come: a missing report is a failure.")
@click.option("--fetched", type=NamedPath(), help="The folder into which the artifacts PATH were downloaded.")
@click.option("--send", is_flag=True, help="Hand it to buildkite-agent instead of printing it.")
@click.option("--output", type=NamedPath(), help="Write it to a file instead.")
def annotate(
    paths: tuple[Path, ...],
    context: str,
    title: str | None,
    expect: int,
    final: bool,
    fetched: Path | None,
    send: bool,
    output: Path | None,
) -> int:
    """Group the failures in JUnit files (PATH: files, or folders of them) by root cause, in Markdown.

    A PATH that is not there has not reported yet. However much failed, the text stays below Buildkite's limit. The exit
    code is 0: whether a build is red is for its jobs to say, never for an annotation. Where --send fails, that is told.
    """
    from staticfire.harness.cli.rule_facts import rule_facts
    from staticfire.harness.triage import markdown, reports
    from staticfire.harness.triage.group import triage

    seen = reports.read_junit(paths, fetched or Path())
    found = triage(seen, rule_facts)
    progress = markdown.Progress(title or context, len(seen), expect, final)
    text = markdown.render(found, progress)
    if send:
        _send(text, context, markdown.style(found, progress))
    elif output is not None:
        write_file(output, text, "--output")
    else:
        echo_raw(text, nl=False)
    return OK


def _send(text: str, context: str, style: str) -> None:
    """Hand it to the agent; what goes wrong is told, and fails nothing."""
    command = ["buildkite-agent", "annotate", "--context", context, "--style", style]
    try:
        done = subprocess.run(  # noqa: S603 -- a list of words, no shell
            command, input=text.encode("utf-8", "replace"), capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        echo(f"Warning: the annotation {context} was not sent: {error}", err=True)
        return
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        echo(f"Warning: the annotation {context} was not sent: exit status {done.returncode}: {said}", err=True)
