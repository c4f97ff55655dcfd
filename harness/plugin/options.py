"""Options and `ini` keys, checked once at configuration; which parts of the plugin they load."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import pytest

from staticfire.harness.errors import nearest

ENGINES: Final = ("reference", "vllm")
GUARDS: Final = ("assertions", "collection", "cuda", "ids", "leaks", "skips")
PROFILES: Final = ("dev", "ci", "nightly")
SHARD_FORM: Final = "K/N with 1 <= K <= N, such as 2/3"


def add(parser: pytest.Parser) -> None:
    """Add everything under one heading."""
    group = parser.getgroup("staticfire", "staticfire: matrices, runners and guards")
    group.addoption(
        "--sf-engine",
        metavar="NAME",
        help=f"The engine that `vllm_runner` starts: {' or '.join(ENGINES)} [ini sf_engine, else reference].",
    )
    group.addoption(
        "--sf-select",
        action="append",
        metavar="AXIS=VALUE",
        help="Keep the cells of every matrix that have this value (a pattern such as jamba*); repeatable.",
    )
    group.addoption(
        "--sf-guards",
        metavar="NAMES",
        help=f"Guards, comma-separated: {', '.join(GUARDS)}; or all, or none [ini sf_guards, else none].",
    )
    group.addoption("--sf-shard", metavar="K/N", help="Run the K-th of N shards of what was collected.")
    group.addoption(
        "--sf-durations",
        action="append",
        metavar="JUNIT.XML",
        help="Recorded durations to shard by, as --sf-durations=FILE (repeatable); without any, tests count alike.",
    )
    group.addoption(
        "--sf-hypothesis",
        metavar="PROFILE",
        help=f"Register and load the Hypothesis profile: {', '.join(PROFILES)}, or auto [ini sf_hypothesis].",
    )
    group.addoption(
        "--sf-test-engine",
        action="store_true",
        help="Upload the results to Buildkite Test Engine from one process, with the tags of each cell.",
    )
    parser.addini("sf_engine", "The engine that `vllm_runner` starts.", default="reference")
    parser.addini("sf_guards", "Guards that are on: names, all or none.", type="args", default=[])
    parser.addini("sf_hypothesis", "Hypothesis profile to register and load, or auto.", default="")
    parser.addini("sf_test_engine", "Upload results from one process, with tags.", type="bool", default=False)
    parser.addini("sf_known_threads", "Patterns of thread names that no test answers for.", type="args", default=[])


def configure(config: pytest.Config) -> None:
    """Check every option, and load what was asked for.

    Raises:
        pytest.UsageError: All mistakes at once.
    """
    faults: list[str] = []
    engine = _one_of(config, "sf_engine", ENGINES, faults)
    profile = _one_of(config, "sf_hypothesis", (*PROFILES, "auto"), faults)
    guards = _guards(config, faults)
    shard = _shard(config, faults)
    if faults:
        raise pytest.UsageError("\n".join(faults))
    config.stash[ENGINE] = engine or "reference"
    if config.stash[ENGINE] != "reference":
        from staticfire.harness.plugin import runner  # noqa: PLC0415 -- only where it is asked for

        runner.use(config.stash[ENGINE])
    if guards:
        from staticfire.harness.plugin.guards.registry import register  # noqa: PLC0415 -- the same

        register(config, guards)
    if profile:
        if not config.pluginmanager.hasplugin("hypothesispytest"):
            raise pytest.UsageError(f"sf_hypothesis={profile}: Hypothesis is not installed, or its plugin is blocked")
        from staticfire.harness.plugin import hypothesis_profiles  # noqa: PLC0415 -- brings Hypothesis

        config.pluginmanager.register(hypothesis_profiles.load(config, profile))
    if config.getoption("sf_test_engine") or config.getini("sf_test_engine"):
        from staticfire.harness.plugin import collector  # noqa: PLC0415 -- the same

        collector.register(config)
    if shard is not None:
        from staticfire.harness.plugin import shard as parts  # noqa: PLC0415 -- the same

        part = parts.ShardPlugin(*shard, config.getoption("sf_durations") or [])
        config.pluginmanager.register(part, parts.NAME)
        if config.pluginmanager.hasplugin("xdist"):
            config.pluginmanager.register(parts.ControllerPart(part))


def unconfigure(config: pytest.Config) -> None:
    """Let go of what is kept for the whole process."""
    import sys  # noqa: PLC0415 -- the only use

    runner = sys.modules.get("staticfire.harness.plugin.runner")
    if runner is not None and ENGINE in config.stash:
        runner.use(None)


ENGINE: Final = pytest.StashKey[str]()


def _one_of(config: pytest.Config, name: str, allowed: Sequence[str], faults: list[str]) -> str:
    typed = config.getoption(name)
    value = str(config.getini(name) if typed is None else typed)
    if value and value not in allowed:
        where = f"ini {name}" if typed is None else f"--{name.replace('_', '-')}"
        faults.append(f"{where}={value}: no such choice.{nearest(value, allowed)} Allowed: {', '.join(allowed)}.")
    return value


def _guards(config: pytest.Config, faults: list[str]) -> tuple[str, ...]:
    typed = config.getoption("sf_guards")
    names = [
        name for entry in ([typed] if typed is not None else config.getini("sf_guards")) for name in entry.split(",")
    ]
    where = "ini sf_guards" if typed is None else "--sf-guards"
    allowed = (*GUARDS, "all", "none")
    found = [name.strip() for name in names if name.strip()]
    faults += [
        f"{where}={name}: no such guard.{nearest(name, allowed)} Allowed: {', '.join(allowed)}."
        for name in found
        if name not in allowed
    ]
    if "none" in found and len(found) > 1:
        faults.append(f"{where}: none stands alone")
    if "all" in found:
        return GUARDS
    return tuple(name for name in GUARDS if name in found)


def _shard(config: pytest.Config, faults: list[str]) -> tuple[int, int] | None:
    typed = config.getoption("sf_shard")
    given = [str(argument) for argument in config.invocation_params.args]
    faults += [
        f"--sf-durations {path}: write --sf-durations={path}; a path that stands alone is one of the test folders to "
        "pytest, by which it finds its root folder and its ini file"
        for option, path in pairwise(given)
        if option == "--sf-durations" and (config.invocation_params.dir / path).exists()
    ]
    if typed is None:
        if config.getoption("sf_durations"):
            faults.append("--sf-durations: says nothing without --sf-shard K/N")
        return None
    index, slash, count = typed.partition("/")
    if slash and index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count):
        return int(index), int(count)
    faults.append(f"--sf-shard={typed}: must be {SHARD_FORM}")
    return None
