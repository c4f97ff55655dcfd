"""A pipeline run on this machine, one job after another, in the order of its dependencies.

What a job says to the agent goes to a stand-in, which keeps annotations and artifacts in a folder of the build.
"""

import math
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from staticfire.harness.pipeline.steps import Block, Command, Dependency, Leaf, Pipeline, needed
from staticfire.harness.run.errors import Interrupted
from staticfire.harness.run.signals import StopSignals

State = Literal["passed", "failed", "soft failed", "skipped", "waits", "not run", "timed out", "interrupted"]
GOOD: Final[frozenset[State]] = frozenset({"passed", "soft failed", "skipped", "waits"})

MINUTE: Final = 60.0
LOOK: Final = 0.2
"""Seconds between two looks whether somebody wants an end."""

AGENT: Final = """#!/bin/sh
# Stands in for buildkite-agent: keeps annotations and artifacts in $STATICFIRE_LOCAL.
copied() { # FROM TO PATTERN: copy what matches, under its path
  found=1
  cd "$1" || exit 1
  IFS=
  for file in $3; do
    [ -f "$file" ] || continue
    found=0
    mkdir -p "$2/$(dirname "$file")" && cp "$file" "$2/$file" || exit 1
  done
  [ $found -eq 0 ] || echo "no artifact matches $3" >&2
  return $found
}
case "$1" in
  annotate)
    shift; context=default; style=default
    while [ $# -gt 0 ]; do
      case "$1" in
        --context) context=$2; shift ;;
        --style) style=$2; shift ;;
        --append) echo "the stand-in for the agent cannot append" >&2; exit 1 ;;
        --*) ;;
        *) echo "the stand-in for the agent reads an annotation from standard input" >&2; exit 1 ;;
      esac
      shift
    done
    cat > "$STATICFIRE_LOCAL/$(printf %s "$context" | tr / _).md"
    printf %s "$style" > "$STATICFIRE_LOCAL/$(printf %s "$context" | tr / _).style"
    ;;
  artifact)
    store=$STATICFIRE_LOCAL/artifacts
    mkdir -p "$store"
    case "$2" in
      upload) copied . "$store" "$3" ;;
      download) copied "$store" "$(cd "$4" && pwd)" "$3" ;;
      *) echo "the stand-in for the agent does not know: artifact $2" >&2; exit 1 ;;
    esac
    ;;
  *) echo "the stand-in for the agent does not know: $1" >&2; exit 1 ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How one step ended.

    Attributes:
        key: Of the step.
        state: How.
        seconds: How long it took; 0 where it did not run.
        why: More, for a person.
    """

    key: str
    state: State
    seconds: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """What the build would show."""

    context: str
    style: str
    body: str


@dataclass(slots=True)
class LocalBuild:
    """What became of a pipeline."""

    steps: list[Ended] = field(default_factory=list)
    annotations: list[Annotation] = field(default_factory=list)
    interrupted: Interrupted | None = None

    @property
    def red(self) -> bool:
        """Whether the build failed."""
        return any(step.state not in GOOD for step in self.steps)


def order(pipeline: Pipeline) -> Iterator[Leaf]:
    """Every step after those that it depends on, otherwise as written. The pipeline must have no cycle."""
    leaves = {step.key: step for step in pipeline.leaves()}
    done: set[str] = set()

    def after(step: Leaf) -> Iterator[Leaf]:
        if step.key in done:
            return
        done.add(step.key)
        for key in needed(step):
            if key in leaves:
                yield from after(leaves[key])
        yield step

    for step in leaves.values():
        yield from after(step)


def run(
    pipeline: Pipeline, root: Path, environment: Mapping[str, str], begun: Callable[[Leaf], None], folder: Path
) -> LocalBuild:
    """Run it; the output of jobs goes where this process's goes.

    Args:
        pipeline: Without faults.
        root: Where jobs run.
        environment: Of this process.
        begun: Told of each step before it runs.
        folder: An empty one, for the stand-in and what it keeps.
    """
    build, states = LocalBuild(), dict[str, State]()
    agent = folder / "bin" / "buildkite-agent"
    agent.parent.mkdir()
    agent.write_text(AGENT, encoding="utf-8")
    agent.chmod(0o755)
    kept = folder / "annotations"
    kept.mkdir()
    base = {
        **environment,
        **(pipeline.env or {}),
        "PATH": f"{agent.parent}{os.pathsep}{environment.get('PATH', os.defpath)}",
        "STATICFIRE_LOCAL": str(kept),
    }
    with StopSignals() as stop:
        for step in order(pipeline):
            try:
                ended = Ended(step.key, "not run", why="interrupted") if build.interrupted else None
                ended = ended or _one(step, states, root, base, begun, stop)
            except Interrupted as signalled:
                build.interrupted = signalled
                ended = Ended(step.key, "interrupted", why=str(signalled))
            states[step.key] = ended.state
            build.steps.append(ended)
    build.annotations = [
        Annotation(path.stem, path.with_suffix(".style").read_text(encoding="utf-8"), path.read_text(encoding="utf-8"))
        for path in sorted(kept.glob("*.md"))
    ]
    return build


def _one(
    step: Leaf,
    states: Mapping[str, State],
    root: Path,
    base: Mapping[str, str],
    begun: Callable[[Leaf], None],
    stop: StopSignals,
) -> Ended:
    for one in step.depends_on:
        allowed = isinstance(one, Dependency) and one.allow_failure
        key = one.step if isinstance(one, Dependency) else one
        state = states.get(key, "passed")
        if state == "waits":
            return Ended(step.key, "waits", why=f"behind {key}")
        if state not in GOOD and not allowed:
            return Ended(step.key, "not run", why=f"{key} {state}")
    if isinstance(step, Block):
        return Ended(step.key, "waits", why="for a person")
    if step.skip is not None:
        return Ended(step.key, "skipped", why=step.skip)
    begun(step)
    return _run(step, root, base, stop)


def _run(step: Command, root: Path, base: Mapping[str, str], stop: StopSignals) -> Ended:
    """Run one job as an agent does: one script, by bash, ended by the first command that fails."""
    limit = MINUTE * step.timeout_in_minutes if step.timeout_in_minutes else None
    start = time.monotonic()
    with tempfile.NamedTemporaryFile("w", suffix=".sh", encoding="utf-8") as script:
        script.write("\n".join(step.commands) + "\n")
        script.flush()
        process = subprocess.Popen(  # noqa: S603 -- running these commands is what was asked for
            ["bash", "-e", script.name],  # noqa: S607 -- the user's bash
            cwd=root,
            env={**base, "BUILDKITE_STEP_KEY": step.key, **(step.env or {})},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            status = _ended(process, stop, limit)
        except BaseException:
            _end(process)
            raise
    seconds = time.monotonic() - start
    if status is None:
        _end(process)
        return Ended(step.key, "timed out", seconds, f"after {step.timeout_in_minutes} minutes")
    if status == 0:
        return Ended(step.key, "passed", seconds)
    excused = any(one.exit_status in {"*", status} for one in step.soft_fail)
    return Ended(step.key, "soft failed" if excused else "failed", seconds, f"exit status {status}")


def _ended(process: "subprocess.Popen[bytes]", stop: StopSignals, limit: float | None) -> int | None:
    """Wait for a job, and look whether somebody wants an end; None where its time is over.

    Raises:
        Interrupted: A signal asked for it.
    """
    left = math.inf if limit is None else time.monotonic() + limit
    while time.monotonic() < left:
        stop.check()
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=min(LOOK, max(0.0, left - time.monotonic())))
    return None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the job and everything it started."""
    for number, seconds in ((signal.SIGTERM, 10.0), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(process.pid, number)
            process.wait(timeout=seconds)
    process.wait()
