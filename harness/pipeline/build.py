"""From jobs and choices to a pipeline: checks first, shards on their queues, and one step that sums up."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from staticfire.harness.pipeline.jobs import Job, report_folder
from staticfire.harness.pipeline.limits import SKIP_LENGTH
from staticfire.harness.pipeline.select import Choice, predecessors
from staticfire.harness.pipeline.settings import CHECKS, SUMMARY, Check, Settings, Work
from staticfire.harness.pipeline.steps import (
    Block,
    Command,
    Dependency,
    Group,
    Leaf,
    Pipeline,
    Retry,
    RetryRule,
    SoftFail,
    Step,
)

LOST_AGENT: Final = Retry(
    automatic=(
        RetryRule(exit_status=-1, limit=2),
        RetryRule(exit_status=255, limit=2),
        RetryRule(signal_reason="agent_stop", limit=2),
    )
)
"""For agents that went away. A test that failed is not tried again."""
_EMOJI: Final = re.compile(r":[\w+-]+:")
"""In a label; an annotation shows texts as they are."""


def build(settings: Settings, jobs: Sequence[Job], choices: Mapping[str, Choice]) -> Pipeline:
    """The pipeline of all jobs; those not selected stand in it as skipped, with the reason.

    Args:
        settings: Of the project.
        jobs: In order, checks first.
        choices: Key -> choice, for each of them.
    """
    steps: list[Step] = []
    checks = [job for job in jobs if job.phase == "check"]
    if checks:
        made = tuple(leaf for job in checks for leaf in _leaves(job, settings, jobs, choices))
        steps.append(Group(group=":mag: checks", key=CHECKS, steps=made))
    works: tuple[Work, ...] = (*settings.matrix, *settings.tests)
    for work in works:
        own = [job for job in jobs if job.work is work]
        leaves = tuple(leaf for job in own for leaf in _leaves(job, settings, jobs, choices))
        if len(leaves) == 1:
            steps += leaves
        else:
            steps.append(Group(group=work.label or work.key, key=f"{work.key}-all", steps=leaves))
    summary = _summary(settings, jobs, choices)
    if summary is not None:
        steps.append(summary)
    return Pipeline(env=settings.env or None, steps=tuple(steps))


def _leaves(job: Job, settings: Settings, jobs: Sequence[Job], choices: Mapping[str, Choice]) -> Iterator[Leaf]:
    """The step of a job, after the one that waits for a person where it is optional."""
    choice = choices[job.key]
    before = list(predecessors(job, jobs))
    if job.work.optional and choice.selected:
        ask = f"{job.work.key}-ask"
        if job.shard[0] == 1:
            label = job.work.label or job.work.key
            yield Block(block=f"Run {label}?", key=ask, depends_on=tuple(before), blocked_state="passed")
        before = [ask]
    device = settings.devices[job.work.device]
    scarce, excuse = device.concurrency is not None, job.work.soft_fail
    env = {"STATICFIRE_STEP_KEY": job.key, **job.work.env}
    yield Command(
        label=job.label,
        key=job.key,
        commands=_script(job, settings, _selected(job.work, jobs, choices)),
        agents={"queue": device.queue},
        env=env,
        depends_on=tuple(before),
        skip=None if choice.selected else _short(choice.because),
        timeout_in_minutes=job.work.timeout_minutes,
        retry=LOST_AGENT,
        soft_fail=(SoftFail(exit_status=excuse.exit_status),) if excuse else (),
        artifact_paths=_artifacts(job, settings),
        concurrency=device.concurrency,
        concurrency_group=f"{settings.name}/{job.work.device}" if scarce else None,
        concurrency_method=device.concurrency_method if scarce else None,
    )


def _artifacts(job: Job, settings: Settings) -> tuple[str, ...]:
    own = () if job.phase == "check" else (f"{report_folder(job.work, job.shard[0], settings)}/**/*",)
    return (*own, *job.work.artifacts)


def _selected(work: Work, jobs: Sequence[Job], choices: Mapping[str, Choice]) -> int:
    """How many shards of a matrix or suite this build runs."""
    return sum(job.work is work and choices[job.key].selected for job in jobs)


def _script(job: Job, settings: Settings, shards: int) -> tuple[str, ...]:
    """The commands, and what is told of how they ended; the exit status is that of the command itself."""
    work = job.work
    *setup, command = job.commands
    if isinstance(work, Check):
        if not work.annotation:
            return job.commands
        file, context = shlex.quote(work.annotation), shlex.quote(work.key)
        show = f"buildkite-agent annotate --context {context} --style error < {file}"
        return (
            *setup,
            _kept(command),
            f'if [ "$status" -ne 0 ] && [ -s {file} ]; then {show} || echo "the annotation could not be shown"; fi',
            'exit "$status"',
        )
    folder = report_folder(work, job.shard[0], settings)
    return (
        *setup,
        # A report of an earlier build must not pass for this one's.
        f"rm -rf {shlex.quote(folder)}",
        _kept(command),
        f"buildkite-agent artifact upload {shlex.quote(f'{folder}/junit.xml')} || true",
        *_annotate(work, settings, max(1, shards)),
        'exit "$status"',
    )


def _kept(command: str) -> str:
    """Run a command, its last comment included, and keep its exit status."""
    return f"status=0\n{{\n{command}\n}} || status=$?"


def _annotate(work: Work, settings: Settings, shards: int, *, final: bool = False) -> list[str]:
    """Show what this build knows of all shards of one matrix or suite so far, under one context."""
    folder, fetched = f"{settings.report}/{work.key}", f"{settings.report}/fetched/{work.key}"
    title = _EMOJI.sub("", work.label).strip() or work.key
    words = ["annotate", folder, "--fetched", fetched, "--context", work.key, "--title", title]
    words += ["--expect", str(shards), *(["--final"] if final else []), "--send"]
    where = shlex.quote(fetched)
    return [
        f"rm -rf {where} && mkdir -p {where}",
        f"buildkite-agent artifact download {shlex.quote(f'{folder}/*/junit.xml')} {where}/ || true",
        f'{settings.program} {shlex.join(words)} || echo "the annotation could not be made"',
    ]


def _summary(settings: Settings, jobs: Sequence[Job], choices: Mapping[str, Choice]) -> Command | None:
    """The last word on every context, once everything has ended; an annotation of a slow shard may be an older one."""
    shown = [job for job in jobs if job.phase != "check" and choices[job.key].selected and not job.work.optional]
    if not shown:
        return None
    works = {job.work.key: job.work for job in shown}.values()
    lines = [line for work in works for line in _annotate(work, settings, _selected(work, jobs, choices), final=True)]
    return Command(
        label=":memo: summary",
        key=SUMMARY,
        commands=(*([settings.setup] if settings.setup else []), *lines),
        agents={"queue": next(iter(settings.devices.values())).queue},
        depends_on=tuple(Dependency(step=job.key, allow_failure=True) for job in shown),
        timeout_in_minutes=15,
        retry=LOST_AGENT,
    )


def _short(because: str) -> str:
    return because if len(because) <= SKIP_LENGTH else because[: SKIP_LENGTH - 1] + "…"
