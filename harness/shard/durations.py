"""Recorded durations, out of the JUnit files of earlier runs."""

import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from staticfire.harness import junit
from staticfire.harness.junit import TestCase


def by_name(cases: Iterable[TestCase]) -> dict[str, float]:
    """Name of a case (the id of a cell) -> seconds; the median of several runs.

    Cases that were skipped say nothing of the time that they would take.
    """
    seen: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        if case.outcome != "skipped":
            seen[case.name].append(case.seconds)
    return {name: statistics.median(values) for name, values in seen.items()}


def by_file(cases: Iterable[TestCase]) -> dict[str, float]:
    """File of tests -> seconds of all its cases, as pytest writes them; the median over several reports."""
    seen: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for case in cases:
        file = file_of(case)
        if file and case.outcome != "skipped":
            seen[file][case.report] += case.seconds
    return {file: statistics.median(reports.values()) for file, reports in seen.items()}


def file_of(case: TestCase) -> str:
    """`tests/engine/test_llm.py`, from the file the report names or from pytest's dotted class name."""
    if case.file:
        return PurePosixPath(case.file).as_posix()
    parts = case.classname.split(".")
    # A module, then classes: pytest joins all of them by dots.
    names = [number for number, part in enumerate(parts) if part.startswith("test_") or part.endswith("_test")]
    return "/".join(parts[: names[-1] + 1]) + ".py" if names else ""


def cases(paths: Iterable[Path]) -> tuple[TestCase, ...]:
    """Every case of JUnit files, and of those in folders.

    Raises:
        InputError: A path that is not there, or a file that cannot be read.
    """
    return tuple(case for path in junit.files(paths) for case in junit.read(path))
