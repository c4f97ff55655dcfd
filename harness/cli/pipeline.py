"""`staticfire pipeline SOURCE…`: plan a Buildkite pipeline, say why, compare it, or run it on this machine."""

import datetime as dt
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from staticfire.harness.cli import FINDINGS, OK
from staticfire.harness.cli.paths import NamedPath
from staticfire.harness.cli.streams import echo, echo_raw, write_file
from staticfire.harness.errors import InputError
from staticfire.harness.log import safe

if TYPE_CHECKING:
    from staticfire.harness.pipeline.changes import Changes
    from staticfire.harness.pipeline.jobs import Job
    from staticfire.harness.pipeline.local import Annotation, LocalBuild
    from staticfire.harness.pipeline.select import Choice
    from staticfire.harness.pipeline.settings import Settings
    from staticfire.harness.pipeline.steps import Leaf, Pipeline

HEAD: Final = "Made by `staticfire pipeline`; what it is made of says what to change."
EXIT_CODES: Final = """Exit codes: 0 fine, or with --local a green build; 1 a red build, with `diff` a difference;
2 sources that cannot be used, or a pipeline that Buildkite would refuse."""


@click.command(epilog=EXIT_CODES)
@click.argument("sources", nargs=-1, metavar="[explain STEP | diff OLD] SOURCE...")
@click.option("--base", metavar="REVISION", help="Select by what changed since then [default: Buildkite's own].")
@click.option("--changed", multiple=True, metavar="PATH", help="Select by this change instead of git's; repeatable.")
@click.option("--all", "everything", is_flag=True, help="Select everything.")
@click.option("--only", multiple=True, metavar="STEP", help="Select just this step and what it waits for; repeatable.")
@click.option("--timings", multiple=True, metavar="PATH", help="JUnit files, or folders of them, with durations.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["yaml", "json", "vllm-test-area"]),
    default="yaml",
    show_default=True,
    help="What to print: for an agent, or for the generator of vLLM's own pipeline.",
)
@click.option("--output", type=NamedPath(), help="Write it to a file instead.")
@click.option("--output-dir", type=NamedPath(), help="Write it to a folder, a file for each upload that it takes.")
@click.option("--bootstrap", is_flag=True, help="Print the one step that plans and uploads the rest.")
@click.option("--local", is_flag=True, help="Run the pipeline here, one job after another.")
def pipeline(
    sources: tuple[str, ...],
    base: str | None,
    changed: tuple[str, ...],
    everything: bool,
    only: tuple[str, ...],
    timings: tuple[str, ...],
    form: str,
    output: Path | None,
    output_dir: Path | None,
    bootstrap: bool,
    local: bool,
) -> int:
    """Print a Buildkite pipeline for SOURCE: a settings file, or matrices and folders of tests.

    Without a SOURCE it is .buildkite/staticfire.toml. Checks come first, then shards of matrices and tests, cut by
    recorded durations and selected by what changed. `explain STEP` says why a step is there and what it does,
    `diff OLD` how the pipeline differs from the file OLD.
    """
    asked = _asked(sources)
    _exclusive(base=base, changed=changed, all=everything, only=only)
    _exclusive(output=output, output_dir=output_dir, bootstrap=bootstrap, local=local, explain=asked.explain)
    root = Path()
    planned = _plan(asked, root, _Choosing(base, changed, everything, only), timings)
    if bootstrap:
        return _bootstrap(planned, asked)
    if asked.explain:
        from staticfire.harness.pipeline.explain import explain

        echo("\n".join(explain(asked.explain, planned.jobs, planned.choices, planned.pipeline, planned.settings)))
        return OK
    _judge(planned.pipeline)
    if asked.diff:
        return _diff(asked.diff, planned.pipeline)
    if local:
        return _local(planned.pipeline, root)
    _write(planned, form, output, output_dir)
    echo(_summary(planned), err=True)
    return OK


@dataclass(frozen=True)
class _Asked:
    """What the arguments say."""

    sources: tuple[str, ...]
    explain: str = ""
    diff: str = ""


@dataclass(frozen=True)
class _Choosing:
    """By what jobs are selected; at most one of these."""

    base: str | None
    changed: Sequence[str]
    everything: bool
    only: Sequence[str]


@dataclass(frozen=True)
class _Planned:
    """Everything that was worked out."""

    settings: "Settings"
    jobs: "Sequence[Job]"
    choices: "Mapping[str, Choice]"
    pipeline: "Pipeline"


def _asked(words: tuple[str, ...]) -> _Asked:
    match words:
        case ("explain", step, *rest):
            return _Asked(tuple(rest), explain=step)
        case ("explain",):
            raise click.UsageError("explain what? Name a step: staticfire pipeline explain STEP SOURCE….")
        case ("diff", old, *rest):
            return _Asked(tuple(rest), diff=old)
        case ("diff",):
            raise click.UsageError("compare with what? Name a pipeline file: staticfire pipeline diff OLD SOURCE….")
        case _:
            return _Asked(words)


def _exclusive(**options: Any) -> None:
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} exclude each other.")


def _plan(asked: _Asked, root: Path, choosing: _Choosing, timings: Sequence[str]) -> _Planned:
    from staticfire.harness.pipeline.build import build
    from staticfire.harness.pipeline.jobs import plan
    from staticfire.harness.pipeline.select import only, select, unmet
    from staticfire.harness.pipeline.sources import settings as read

    today = dt.datetime.now(tz=dt.UTC).date()
    settings = read(asked.sources, root, today, timings)
    jobs = plan(settings, root)
    for line in unmet(settings, root):
        echo(f"Warning: {line}", err=True)
    if choosing.only:
        choices = only(jobs, choosing.only)
    else:
        seen = _changes(root, choosing)
        choices = select(jobs, seen.paths, settings, seen.why)
    return _Planned(settings, jobs, choices, build(settings, jobs, choices))


def _changes(root: Path, choosing: _Choosing) -> "Changes":
    """What changed, as git or the user says."""
    from staticfire.harness.pipeline import changes

    if choosing.everything:
        return changes.Changes(None, "everything is asked for")
    if choosing.changed:
        return changes.Changes(tuple(choosing.changed), "as given")
    return changes.changes(root, choosing.base or changes.base(os.environ))


def _judge(pipeline: "Pipeline") -> None:
    """Refuse what Buildkite would refuse."""
    from staticfire.harness.pipeline.limits import JOBS_PER_BUILD
    from staticfire.harness.pipeline.validate import faults

    found = faults(pipeline, JOBS_PER_BUILD)
    if found:
        raise InputError("\n".join(found))


def _bootstrap(planned: _Planned, asked: _Asked) -> int:
    from staticfire.harness.pipeline import bootstrap
    from staticfire.harness.pipeline.sources import DEFAULT

    file = asked.sources[0] if asked.sources else str(DEFAULT)
    echo_raw(bootstrap.text(planned.settings, file), nl=False)
    return OK


def _diff(old: str, pipeline: "Pipeline") -> int:
    from staticfire.harness.pipeline import read
    from staticfire.harness.pipeline.explain import diff

    former = read.load(Path(old))
    lines = diff(former, pipeline)
    echo("\n".join(lines) if lines else "no step differs")
    return FINDINGS if lines else OK


def _write(planned: _Planned, form: str, output: Path | None, output_dir: Path | None) -> None:
    from staticfire.harness.pipeline import write

    if output_dir is not None:
        if form != "yaml":
            raise click.UsageError(f"--output-dir is for --format yaml, not for {form}.")
        output_dir.mkdir(parents=True, exist_ok=True)
        for stale in output_dir.glob("part-*.yaml"):
            stale.unlink()
        for number, part in enumerate(write.parts(planned.pipeline), 1):
            write_file(output_dir / f"part-{number:03}.yaml", write.text(part, HEAD), "--output-dir")
        return
    text = _text(planned, form)
    if output is not None:
        write_file(output, text, "--output")
    else:
        echo_raw(text, nl=False)


def _text(planned: _Planned, form: str) -> str:
    import yaml

    from staticfire.harness.pipeline import vllm_area, write

    if form == "vllm-test-area":
        area = vllm_area.document(planned.settings, planned.jobs)
        return yaml.safe_dump(area, sort_keys=False, allow_unicode=True, width=1_000_000)
    count = len(write.parts(planned.pipeline))
    if count > 1:
        raise InputError(f"the pipeline takes {count} uploads: write it with --output-dir, a file for each of them.")
    if form == "json":
        return json.dumps(write.document(planned.pipeline), indent=2, ensure_ascii=False) + "\n"
    return write.text(planned.pipeline, HEAD)


def _summary(planned: _Planned) -> str:
    run = [job for job in planned.jobs if planned.choices[job.key].selected]
    seconds = [job.seconds for job in run if job.seconds is not None]
    from staticfire.harness.run.record import duration

    longest = f"; the longest shard is expected to take {duration(max(seconds))}" if seconds else ""
    why = next((planned.choices[job.key].because for job in run), "nothing that a step depends on changed")
    return f"staticfire: {len(run)} of {len(planned.jobs)} jobs selected ({why}){longest}"


@contextmanager
def _commands_off(environment: Mapping[str, str]) -> Iterator[None]:
    """Let a workflow's log of GitHub take nothing that a job prints for a command; no other system can be told so."""
    if environment.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(16)
    echo_raw(f"::stop-commands::{token}")
    sys.stdout.flush()
    try:
        yield
    finally:
        echo_raw(f"::{token}::")
        sys.stdout.flush()


def _local(pipeline: "Pipeline", root: Path) -> int:
    from staticfire.harness.pipeline import local

    def begun(step: "Leaf") -> None:
        echo(f"\n=== {step.key}", err=True)

    with tempfile.TemporaryDirectory(prefix="staticfire-") as folder, _commands_off(os.environ):
        build = local.run(pipeline, root, os.environ, begun, Path(folder))
    for annotation in build.annotations:
        echo_raw(f"\n--- annotation {safe(annotation.context)} ({safe(annotation.style)})")
        echo(_shown(annotation))
    echo("\n" + "\n".join(_table(build)))
    if build.interrupted is not None:
        return build.interrupted.exit_code
    return FINDINGS if build.red else OK


def _shown(annotation: "Annotation") -> str:
    """An annotation for a terminal: its beginning, as plain characters, without those that steer a terminal."""
    import html

    from staticfire.harness.check.messages import printable

    lines = [html.unescape(line) for line in annotation.body.splitlines()]
    more = [f"… and {len(lines) - 60} more lines"] if len(lines) > 60 else []
    return "\n".join([*(printable(line)[:400] for line in lines[:60]), *more])


def _table(build: "LocalBuild") -> list[str]:
    from staticfire.harness.run.record import duration

    width = max((len(step.key) for step in build.steps), default=0)
    lines = []
    for step in build.steps:
        time = duration(step.seconds) if step.seconds else "-"
        lines.append(f"{step.key:{width}}  {step.state:11}  {time:>7}  {step.why}".rstrip())
    return [*lines, f"the build is {'red' if build.red else 'green'}"]
