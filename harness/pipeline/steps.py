"""Typed steps of a Buildkite pipeline. What they do not know cannot be said: no key vanishes in silence.

Texts are as the job shall see them; `write.py` escapes what an agent would interpolate.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

SignalReason = Literal[
    "*",
    "none",
    "agent_incompatible",
    "agent_refused",
    "agent_stop",
    "cancel",
    "process_run_error",
    "signature_rejected",
    "stack_error",
]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """No unknown keys, no change after it is made, defaults not written."""


class RetryRule(_Strict, frozen=True):
    """When a job is tried again, without anyone asking.

    Attributes:
        exit_status: Of the command; -1 for a lost agent.
        signal: That ended it.
        signal_reason: Why the agent signalled it.
        limit: At most so often.
    """

    exit_status: int | tuple[int, ...] | Literal["*"] | None = None
    signal: str | None = None
    signal_reason: SignalReason | None = None
    limit: int | None = None


class Retry(_Strict, frozen=True):
    """Rules in order; the first that matches counts."""

    automatic: tuple[RetryRule, ...] = ()


class SoftFail(_Strict, frozen=True):
    """An exit status that does not fail the build."""

    exit_status: int | Literal["*"]


class Adjustment(_Strict, frozen=True, rename={"with_": "with"}):
    """A combination added to a matrix, or left out of it."""

    with_: Mapping[str, str | int | bool]
    skip: bool | str | None = None


class Matrix(_Strict, frozen=True):
    """Buildkite's own matrix. This project writes none: they cannot hold more than 50 jobs."""

    setup: Mapping[str, tuple[str | int | bool, ...]]
    adjustments: tuple[Adjustment, ...] = ()


class Dependency(_Strict, frozen=True):
    """A step that must have ended, and may have failed where that is allowed."""

    step: str
    allow_failure: bool | None = None


class Command(_Strict, frozen=True, rename={"if_": "if"}):
    """A step that runs commands.

    Attributes:
        label: Shown.
        key: Stable; what retries, dependencies and annotations go by.
        commands: Lines of one bash script.
        skip: Why it does not run; such a step is passed.
    """

    label: str
    key: str
    commands: tuple[str, ...]
    agents: Mapping[str, str] | None = None
    env: Mapping[str, str] | None = None
    depends_on: tuple[str | Dependency, ...] = ()
    allow_dependency_failure: bool | None = None
    if_: str | None = None
    skip: str | None = None
    timeout_in_minutes: int | None = None
    retry: Retry | None = None
    soft_fail: tuple[SoftFail, ...] = ()
    concurrency: int | None = None
    concurrency_group: str | None = None
    concurrency_method: Literal["ordered", "eager"] | None = None
    artifact_paths: tuple[str, ...] = ()
    parallelism: int | None = None
    matrix: Matrix | None = None
    priority: int | None = None


class Block(_Strict, frozen=True):
    """A step that waits for a person."""

    block: str
    key: str
    prompt: str | None = None
    depends_on: tuple[str | Dependency, ...] = ()
    allow_dependency_failure: bool | None = None
    blocked_state: Literal["passed", "failed", "running"] | None = None


class Group(_Strict, frozen=True):
    """Steps shown together."""

    group: str
    key: str
    steps: tuple[Command | Block, ...]
    depends_on: tuple[str | Dependency, ...] = ()


Leaf = Command | Block
Step = Command | Block | Group


class Pipeline(_Strict, frozen=True):
    """A whole pipeline, or the part of it that one upload takes."""

    steps: tuple[Step, ...]
    env: Mapping[str, str] | None = None

    def leaves(self) -> Iterator[Leaf]:
        """Every step that is no group, in order."""
        for step in self.steps:
            if isinstance(step, Group):
                yield from step.steps
            else:
                yield step

    def commands(self) -> Iterator[Command]:
        """Every step that runs something, in order."""
        yield from (step for step in self.leaves() if isinstance(step, Command))


def jobs(step: Leaf) -> int:
    """How many jobs a step makes."""
    if isinstance(step, Block):
        return 1
    if step.matrix is None:
        return step.parallelism or 1
    count = 1
    for values in step.matrix.setup.values():
        count *= len(values)
    # A combination of the matrix that an adjustment skips is one job less, any other one it adds.
    grid = {tuple(sorted((name, str(value)) for name, value in row.items())) for row in _rows(step.matrix)}
    for adjustment in step.matrix.adjustments:
        row = tuple(sorted((name, str(value)) for name, value in adjustment.with_.items()))
        count += (row not in grid) - bool(adjustment.skip)
    return count


def needed(step: Step) -> tuple[str, ...]:
    """Keys of the steps that it depends on."""
    return tuple(one if isinstance(one, str) else one.step for one in step.depends_on)


def _rows(matrix: Matrix) -> Iterator[Mapping[str, object]]:
    rows: list[dict[str, object]] = [{}]
    for name, values in matrix.setup.items():
        rows = [{**row, name: value} for row in rows for value in values]
    yield from rows
