"""Releases of engines by the names that users type, such as `vllm==0.33.0`. Imports no torch."""

import re
from typing import Final

from staticfire.engine.config.release import NEWEST, RELEASES, VLLM_RELEASES, EngineRelease
from staticfire.harness.errors import InputError, nearest

NEWEST_NAME: Final = NEWEST.name
_VLLM: Final = re.compile(r"(?:vllm\s*(?:==|[ =@:])\s*)?v?(\d+)\.(\d+)(?:\.(\d+))?", re.IGNORECASE)


def names() -> tuple[str, ...]:
    """Every known release, the newest last but for the engine of this package."""
    return tuple(RELEASES)


def find(name: str) -> EngineRelease:
    """Find a release by name.

    Args:
        name: `vllm==VERSION`, or `reference` for the engine of this package.

    Raises:
        InputError: No release has that name, or it is one whose facts were never read.
    """
    if name in RELEASES:
        return RELEASES[name]
    known = f"Releases: {', '.join(RELEASES)}."
    match = _VLLM.fullmatch(name.strip())
    if match is None:
        raise InputError(f"No release named {name!r}.{nearest(name, RELEASES)} {known}")
    asked = tuple(int(part or 0) for part in match.groups())
    exact = next((release for release in VLLM_RELEASES if _parts(release) == asked), None)
    if exact is not None:
        raise InputError(f"No release named {name!r}. Did you mean {exact.name!r}? {known}")
    raise InputError(f"The facts of {name!r} are not known: {_between(asked)} {known}")


def _parts(release: EngineRelease) -> tuple[int, ...]:
    return tuple(int(part) for part in release.version.split("."))


def _between(asked: tuple[int, ...]) -> str:
    """Where an unknown release lies, and which known ones are next to it."""
    older = [release.name for release in VLLM_RELEASES if _parts(release) < asked]
    newer = [release.name for release in VLLM_RELEASES if _parts(release) > asked]
    if not older:
        return f"it is older than {newer[0]}, the oldest one known."
    if not newer:
        return f"it is newer than {older[-1]}, the newest one known."
    return (
        f"it lies between {older[-1]} and {newer[0]}; what changed in between is known of no release. Name one of both."
    )
