"""Which jobs a change needs, and because of what. When in doubt a job runs.

Where dependencies come from is the caller's: today what the settings declare, a graph of imports by the same contract.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Protocol

from staticfire.harness.errors import InputError, nearest
from staticfire.harness.pipeline.jobs import Job
from staticfire.harness.pipeline.settings import Settings


class Dependencies(Protocol):
    """Says what a job depends on."""

    def of(self, job: Job) -> tuple[str, ...]:
        """Beginnings of paths, those after `!` left out of the others; empty where that is not known."""
        ...


class Declared:
    """What the settings declare."""

    def of(self, job: Job) -> tuple[str, ...]:
        """As declared, and the suite or matrix itself."""
        return job.needs


@dataclass(frozen=True, slots=True)
class Choice:
    """Whether a job runs.

    Attributes:
        selected: Whether.
        because: Why, or why not, in one short sentence.
    """

    selected: bool
    because: str


def select(
    jobs: Sequence[Job],
    changed: Iterable[str] | None,
    settings: Settings,
    unknown: str = "what changed is not known",
    dependencies: Dependencies | None = None,
) -> dict[str, Choice]:
    """Choose among jobs.

    Args:
        jobs: All of them.
        changed: Paths from the root of the checkout; None where they are not known.
        settings: Which paths select everything, or nothing.
        unknown: Why they are not known.
        dependencies: What each job depends on.

    Returns:
        Key -> choice, for every job. A selected job's `depends_on` are selected too.
    """
    source = dependencies or Declared()
    needs = {job.key: source.of(job) for job in jobs}
    paths = None if changed is None else [path for path in changed if not _ignored(path, settings.ignore)]
    everything = unknown if paths is None else _everything(paths, settings.run_all, needs)
    if everything:
        return {job.key: Choice(True, everything) for job in jobs}
    choices = {job.key: _choice(needs[job.key], paths or ()) for job in jobs}
    return _closed(jobs, choices)


def only(jobs: Sequence[Job], keys: Iterable[str]) -> dict[str, Choice]:
    """Choose the jobs that are named, and all that they wait for.

    Args:
        jobs: All of them.
        keys: Of steps, or of works: then all of its shards.

    Raises:
        InputError: Keys of no step, all of them.
    """
    asked, faults = list(dict.fromkeys(keys)), []
    waiting: list[Job] = []
    for key in asked:
        named = [job for job in jobs if key in {job.key, job.work.key}]
        waiting += named
        if not named:
            faults.append(
                f"no step {key!r}.{nearest(key, dict.fromkeys(k for job in jobs for k in (job.work.key, job.key)))}"
            )
    if faults:
        raise InputError("\n".join(faults))
    by_key = {job.key: job for job in jobs}
    made = {job.key: Choice(False, "it is not asked for") for job in jobs}
    made.update({job.key: Choice(True, "it is asked for") for job in waiting})
    while waiting:
        job = waiting.pop()
        for key in predecessors(job, jobs):
            if not made[key].selected:
                made[key] = Choice(True, f"{job.key} waits for it")
                waiting.append(by_key[key])
    return made


def predecessors(job: Job, jobs: Sequence[Job]) -> Iterator[str]:
    """Keys of the jobs that come first: those it names, and every check for what is none."""
    named = set(job.work.depends_on)
    for other in jobs:
        check = other.phase == "check" and job.phase != "check" and not other.work.optional
        if other.work.key in named or check:
            yield other.key


def matches(path: str, needs: Sequence[str]) -> str | None:
    """The beginning that a path meets; None where it meets none, or one after `!`."""
    if any(path.startswith(need[1:]) for need in needs if need.startswith("!")):
        return None
    return next((need for need in needs if not need.startswith("!") and path.startswith(need)), None)


def unmet(settings: Settings, root: Path) -> list[str]:
    """What the settings depend on, though nothing in the checkout begins so: a slip, or a folder that is gone."""
    asked = [(f"step {work.key!r} needs", need) for work in settings.work for need in work.needs]
    asked += [("run_all names", need) for need in settings.run_all]
    told = []
    for who, need in asked:
        folder, _, last = need.removeprefix("!").rstrip("/").rpartition("/")
        here = root / folder
        names = [f"{folder}/{path.name}".lstrip("/") for path in here.iterdir()] if here.is_dir() else []
        bare = [name.rpartition("/")[2] for name in names]
        if not (last in bare if need.endswith("/") else any(name.startswith(last) for name in bare)):
            told.append(f"{who} {need!r}, and nothing here begins like that.{nearest(need, sorted(names))}")
    return told


def _ignored(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(path, one) if "*" in one else path.startswith(one) for one in patterns)


def _everything(paths: Iterable[str], run_all: Sequence[str], needs: Mapping[str, Sequence[str]]) -> str:
    """Why every job runs; empty where not every one does."""
    for path in paths:
        met = matches(path, run_all)
        if met is not None:
            return f"{path} changed, and {met} is listed under run_all"
        if not any(matches(path, of) for of in needs.values()):
            return f"{path} changed, and no step says that it depends on it"
    return ""


def _choice(needs: Sequence[str], paths: Iterable[str]) -> Choice:
    if not needs:
        return Choice(True, "it does not say what it depends on")
    for path in paths:
        met = matches(path, needs)
        if met is not None:
            return Choice(True, f"{path} changed, and it depends on {met}")
    shown = ", ".join(need for need in needs if not need.startswith("!"))
    return Choice(False, f"nothing changed in {shown}")


def _closed(jobs: Sequence[Job], choices: Mapping[str, Choice]) -> dict[str, Choice]:
    """A job that a selected one waits for is selected."""
    parts: dict[str, list[str]] = {}
    for job in jobs:
        parts.setdefault(job.work.key, []).append(job.key)
    made = dict(choices)
    waiting = [job for job in jobs if made[job.key].selected]
    by_key = {job.key: job for job in jobs}
    while waiting:
        job = waiting.pop()
        for key in (key for work in job.work.depends_on for key in parts.get(work, ())):
            if not made[key].selected:
                made[key] = Choice(True, f"{job.key} depends on it")
                waiting.append(by_key[key])
    return made
