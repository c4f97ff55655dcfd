"""What to try again: cells and tests as commands, or the keys of steps, with all that they wait for."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from staticfire.harness.errors import InputError
from staticfire.harness.pipeline.steps import Pipeline, needed
from staticfire.harness.triage.base import Failure
from staticfire.harness.triage.commands import Rerun, pytest_command, rerun


def commands(failures: Iterable[Failure]) -> tuple[str, ...]:
    """Commands that run just these again: one for all cells of a matrix, one for all tests."""
    cells: dict[Rerun, list[str]] = defaultdict(list)
    tests: list[str] = []
    for failure in failures:
        ours = rerun(failure.rerun) if failure.cell else None
        if ours is not None:
            cells[replace(ours, cell="")].append(ours.cell)
        elif failure.file:
            tests.append(failure.id)
    return tuple(filter(None, [*(one.of(names) for one, names in cells.items()), pytest_command(tests)]))


def is_lost(failure: Failure) -> bool:
    """Whether no command runs it again."""
    return not commands([failure])


def step_keys(failures: Sequence[Failure], pipeline: Pipeline) -> tuple[str, ...]:
    """Keys of the steps that failed, and of all that they wait for, in the pipeline's order.

    The step of a failure is told by its report's path: `hybrid/2/junit.xml` is of the step `hybrid-2`, `lint.log` of
    `lint`.

    Raises:
        InputError: A report that belongs to no step. Part of what failed is then not known, and only a full run helps.
    """
    steps = {step.key: needed(step) for step in pipeline.leaves()}
    found: set[str] = set()
    lost: list[str] = []
    for report in dict.fromkeys(failure.report for failure in failures):
        key = next((name for name in _candidates(report) if name in steps), None)
        if key is None:
            lost.append(report)
        else:
            found.add(key)
    if lost:
        raise InputError(
            "\n".join(f"{report}: belongs to no step of the pipeline." for report in lost)
            + "\nSo not all that failed is known: ask for a full run."
        )
    return tuple(key for key in steps if key in _closure(found, steps))


def _closure(keys: Iterable[str], needs: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [one for one in needs.get(key, ()) if one in needs]
    return found


def _candidates(report: str) -> Iterator[str]:
    """Keys that a path may stand for, the most telling first."""
    path = PurePath(report)
    yield re.sub(r"\.(?:xml|log|txt)$", "", path.name)
    parts = path.parts[:-1]
    for at in range(len(parts) - 1, -1, -1):
        if at:
            yield f"{parts[at - 1]}-{parts[at]}"
        yield parts[at]
    if len(parts) > 1:
        yield parts[-2]
