"""What changed against a base, as git says it. Whoever cannot tell says why, and everything runs."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed.

    Attributes:
        paths: From the root of the project; None where that is not known.
        why: Against what, or why it is not known.
    """

    paths: tuple[str, ...] | None
    why: str


def base(environment: Mapping[str, str]) -> str | None:
    """The base of a Buildkite build: the one it names, or the branch a request goes to; None where neither is."""
    if named := environment.get("BUILDKITE_GIT_DIFF_BASE"):
        return named
    branch = environment.get("BUILDKITE_PULL_REQUEST_BASE_BRANCH")
    return f"origin/{branch}" if branch else None


def changes(root: Path, against: str | None) -> Changes:
    """What changed since the work left `against`, what is not committed included.

    Args:
        root: Of the project: a checkout, or a folder of one.
        against: A revision; None where there is none to compare with.
    """
    if not against:
        return Changes(None, "there is no base to compare with (--base)")
    fork = _git(root, "merge-base", "--end-of-options", against, "HEAD")
    if fork is None:
        return Changes(None, f"git finds no common ancestor with {against}")
    # --no-renames: a file that moved changed where it was, too.
    tracked = _git(root, "diff", "--name-only", "--no-renames", "-z", fork.strip(), "--")
    fresh = _git(root, "ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ":/")
    below = _git(root, "rev-parse", "--show-prefix")
    if tracked is None or fresh is None or below is None:
        return Changes(None, f"git cannot compare with {against}")
    # A project may be a folder of a checkout: what lies outside it begins with `../`, which no step depends on.
    inside = below.removesuffix("\n") or "."
    paths = sorted({os.path.relpath(path, inside) for path in (tracked + fresh).split("\0") if path})
    return Changes(tuple(paths), f"compared with {against}")


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails."""
    try:
        done = subprocess.run(  # noqa: S603 -- a list of words, no shell
            ["git", *arguments],  # noqa: S607 -- the user's git
            cwd=root,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else None
