"""Hypothesis profiles for suites of engines: `dev`, `ci` (derandomised) and `nightly` (a seed of the day, printed).

No profile has a deadline: the first example pays for imports and compilation, and a shared machine is slow at times.
"""

import datetime as dt
import os
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

DATABASE: Final = ".hypothesis/examples"
"""Relative to the root; what `nightly` finds is kept there, as an artifact, and tried first by `dev`."""
SEED: Final = "STATICFIRE_HYPOTHESIS_SEED"


class ProfilePlugin:
    """Says which profile runs, and how to have the same examples again."""

    def __init__(self, profile: str, seed: int | None) -> None:
        self.profile = profile
        self.seed = seed

    def pytest_report_header(self) -> str:
        """One line, which `-q` leaves out."""
        again = f", seed {self.seed}: again with --hypothesis-seed={self.seed}" if self.seed is not None else ""
        return f"staticfire: Hypothesis profile {self.profile}{again}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The same where there was no header, and the examples cannot be had again without it."""
        if self.seed is not None and (terminalreporter.no_header or terminalreporter.verbosity < 0):
            terminalreporter.write_line(self.pytest_report_header())


def load(config: pytest.Config, profile: str) -> ProfilePlugin:
    """Register the profiles, and load one before Hypothesis reads its own options.

    Args:
        config: pytest's.
        profile: A name, or `auto`: the variable HYPOTHESIS_PROFILE, else `ci` where CI is set, else `dev`.
    """
    register(config.rootpath / DATABASE)
    if profile == "auto":
        profile = os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
    try:
        settings.load_profile(profile)
    except Exception as error:
        raise pytest.UsageError(f"HYPOTHESIS_PROFILE={profile}: no such profile; ours are dev, ci, nightly") from error
    seed = None
    if profile == "nightly" and config.getoption("hypothesis_seed", None) is None:
        seed = seed_of(dt.datetime.now(tz=dt.UTC).date())
        # workers of xdist are given the options of the controller, so that all have one seed
        config.option.hypothesis_seed = str(seed)
    return ProfilePlugin(profile, seed)


def register(database: Path) -> None:
    """Make the profiles known; loading one is another matter."""
    examples = DirectoryBasedExampleDatabase(str(database))
    settings.register_profile("dev", deadline=None, print_blob=True, database=examples)
    settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
    settings.register_profile(
        "nightly",
        deadline=None,
        max_examples=2000,
        print_blob=True,
        database=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )


def seed_of(day: dt.date) -> int:
    """The seed of a day, such as 20261130; the variable takes its place for a night that is to be repeated."""
    own = os.environ.get(SEED, "")
    if not own:
        return int(day.strftime("%Y%m%d"))
    if own.isdecimal():
        return int(own)
    raise pytest.UsageError(f"{SEED}={own}: must be a whole number")
