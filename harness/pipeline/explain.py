"""Why a step is in a pipeline, and how one pipeline differs from another."""

import difflib
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.pipeline.jobs import Job
from staticfire.harness.pipeline.select import Choice
from staticfire.harness.pipeline.settings import Settings
from staticfire.harness.pipeline.steps import Block, Command, Leaf, Pipeline, needed
from staticfire.harness.run.record import duration


def explain(
    key: str, jobs: Sequence[Job], choices: Mapping[str, Choice], pipeline: Pipeline, settings: Settings
) -> list[str]:
    """Lines about one step: why it runs or not, where, after what, for how long, and what it does.

    Args:
        key: Of the step, or of the work that it is a shard of: then all of its shards.
        jobs: All of them.
        choices: Key -> choice.
        pipeline: Built of them.
        settings: Of the project.

    Raises:
        InputError: No such step.
    """
    wanted = [job for job in jobs if key in {job.key, job.work.key}]
    if not wanted:
        known = [step.key for step in pipeline.leaves()]
        other = next((step for step in pipeline.leaves() if step.key == key), None)
        if other is not None:
            return list(_made(other))
        near = nearest(key, dict.fromkeys((*(job.work.key for job in jobs), *known)))
        raise InputError(f"no step {key!r}.{near} Steps: {', '.join(known)}.")
    steps = {step.key: step for step in pipeline.commands()}
    lines: list[str] = []
    for job in wanted:
        lines += [*([""] if lines else []), *_about(job, choices[job.key], steps[job.key], settings)]
    return lines


def _made(step: Leaf) -> Iterator[str]:
    """Of a step that no table describes: the summary, or one that waits for a person."""
    yield f"{step.key}: {_label(step)}"
    asks = isinstance(step, Block)
    yield f"  {'waits for a person, before what is optional' if asks else 'sums up, whatever became of the others'}"
    if step.depends_on:
        yield f"  after: {', '.join(needed(step))}"
    if isinstance(step, Command):
        yield "  runs:"
        yield from (f"    {line}" for line in step.commands)


def _about(job: Job, choice: Choice, step: Command, settings: Settings) -> Iterator[str]:
    yield f"{job.key}: {job.label}"
    yield f"  {'selected' if choice.selected else 'not selected'}: {choice.because}"
    if job.needs:
        yield f"  depends on the paths: {', '.join(job.needs)}"
    device = settings.devices[job.work.device]
    scarce = f", {device.concurrency} at a time" if device.concurrency else ""
    yield f"  runs on: {job.work.device} (queue {device.queue}{scarce}), at most {job.work.timeout_minutes} minutes"
    if step.depends_on:
        yield f"  after: {', '.join(needed(step))}"
    if job.work.soft_fail:
        excuse = job.work.soft_fail
        yield f"  may fail until {excuse.until}: {excuse.reason} ({excuse.owner})"
    if job.seconds is not None:
        guessed = f", {job.predicted} of them never measured" if job.predicted else ""
        noun = "cell" if job.phase == "matrix" else "item"
        many = f"{len(job.ids)} {noun}{'' if len(job.ids) == 1 else 's'}"
        yield f"  expected: {duration(job.seconds)} for {many}{guessed}"
    yield "  runs:"
    yield from (f"    {line}" for line in job.commands)


def diff(old: Pipeline, new: Pipeline) -> list[str]:
    """Lines that say which steps came, went and changed, by their keys; empty where nothing differs."""
    before, after = ({step.key: step for step in one.leaves()} for one in (old, new))
    lines = [f"- {key}: {_label(step)}" for key, step in before.items() if key not in after]
    lines += [f"+ {key}: {_label(step)}" for key, step in after.items() if key not in before]
    for key, step in after.items():
        former = before.get(key)
        if former is not None and former != step:
            lines += [f"~ {key}:", *_changes(msgspec.to_builtins(former), msgspec.to_builtins(step))]
    lines += [f"~ env {line}" for line in _fields(old.env or {}, new.env or {})]
    return lines


def _label(step: object) -> str:
    return str(getattr(step, "label", "") or getattr(step, "block", ""))


def _changes(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name), new.get(name)
        if before == after:
            continue
        if name == "commands":
            texts = (_words(before), _words(after))
            shown = [line for line in difflib.ndiff(*texts) if line[0] in "+-"]
            yield from (f"    {line}" for line in ["commands:", *shown])
        else:
            yield f"    {name}: {_value(before)} -> {_value(after)}"


def _fields(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield f"{name}: {_value(old.get(name))} -> {_value(new.get(name))}"


def _words(commands: object) -> list[str]:
    """A line an option: a cell that went is one line."""
    assert isinstance(commands, Sequence)
    return [part for line in commands for part in str(line).replace(" --", "\n  --").split("\n")]


def _value(value: object) -> str:
    return "nothing" if value is None else str(value)
