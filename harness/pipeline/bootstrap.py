"""The file that a repository keeps: one step that plans the rest and uploads it."""

import shlex

from staticfire.harness.pipeline import write
from staticfire.harness.pipeline.build import LOST_AGENT
from staticfire.harness.pipeline.settings import Settings
from staticfire.harness.pipeline.steps import Command, Pipeline


def bootstrap(settings: Settings, file: str) -> Pipeline:
    """One step: plan by what changed, upload part by part.

    What is uploaded lands right behind the step, so the last part goes first.

    Args:
        settings: Of the project.
        file: Where they stand.
    """
    folder = shlex.quote(f"{settings.report}/pipeline")
    device = next(iter(settings.devices.values()))
    commands = (
        *([settings.setup] if settings.setup else []),
        f"{settings.program} pipeline {shlex.quote(file)} --output-dir {folder}",
        f'for part in $(ls -r {folder}/*.yaml); do buildkite-agent pipeline upload "$part"; done',
    )
    step = Command(
        label=":pipeline: plan",
        key="plan",
        commands=commands,
        agents={"queue": device.queue},
        timeout_in_minutes=15,
        retry=LOST_AGENT,
        artifact_paths=(f"{settings.report}/pipeline/*.yaml",),
    )
    return Pipeline(env=settings.env or None, steps=(step,))


def text(settings: Settings, file: str) -> str:
    """The file itself."""
    head = f"Made by `staticfire pipeline {file} --bootstrap`; {file} says what to change."
    return write.text(bootstrap(settings, file), head)
