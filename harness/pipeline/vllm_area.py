"""A `group`/`steps` file for the generator of vLLM's own pipeline.

That generator flattens nothing (a group inside it would vanish), makes keys of labels unless they are given, and turns
every `'` of a command into `"`; an agent then interpolates what it made. So steps are flat, each has its key, every `$`
is written `$$`, and a command that would then say something else is refused.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline import write
from staticfire.harness.pipeline.jobs import Job
from staticfire.harness.pipeline.settings import Settings

DEVICE = "cpu-small"
"""The smallest device without a GPU that vLLM's pipeline has."""


def document(settings: Settings, jobs: Sequence[Job]) -> dict[str, Any]:
    """The file as plain values: every job, selected or not; that generator selects for itself.

    Raises:
        InputError: Commands that it would change, all of them.
    """
    faults = [f"step {job.key!r}: {fault}" for job in jobs for line in job.commands for fault in _changed(line)]
    steps = [write.plain(_step(job, settings), f"step {job.key}", faults) for job in jobs]
    group = write.plain(settings.name, "group", faults)
    if faults:
        raise InputError("\n".join(faults))
    return {"group": group, "steps": steps}


def _step(job: Job, settings: Settings) -> dict[str, Any]:
    device = settings.devices[job.work.device]
    step: dict[str, Any] = {
        "label": job.label,
        "key": job.key,
        "device": device.vllm or (DEVICE if job.work.device == "cpu" else job.work.device),
        "timeout_in_minutes": job.work.timeout_minutes,
    }
    if job.needs:
        step["source_file_dependencies"] = list(job.needs)
    if job.work.optional:
        step["optional"] = True
    if job.work.soft_fail:
        step["soft_fail"] = True
    if job.work.env:
        step["env"] = dict(job.work.env)
    if job.work.depends_on:
        step["depends_on"] = list(job.work.depends_on)
    step["commands"] = list(job.commands)
    return step


def _changed(command: str) -> Iterator[str]:
    """Why a command does not survive: `'` becomes `"` there."""
    if "'" not in command:
        return
    turned = command.replace("'", '"')
    inside = [part for number, part in enumerate(command.split("'")) if number % 2]
    try:
        same = shlex.split(turned) == shlex.split(command)
    except ValueError:
        same = False
    if not same or any(mark in part for part in inside for mark in "$`\\!"):
        yield f"its single quotes become double quotes in that generator, which changes the command: {command[:200]}"
