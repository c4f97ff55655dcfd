"""kill -9 of each process of two engines of two ranks, at each moment: the error, its limit, and nothing left."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toy_core
import victims
from staticfire.harness.models.make import ensure
from victims import COORDINATOR, CORES, EVERYONE, FRONT_END, MOMENTS, WORKERS

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

SAID_S = 60.0
"""Limit for an error to be said, on a machine with other things to do; docs/engine.md has what was measured."""

GONE_S = 10.0
"""The same for processes to be gone once the front end is."""

SHARED_MEMORY = Path("/dev/shm")

TABLE = [(who, when) for when in MOMENTS for who in EVERYONE if victims.exists(who, when)]
CHOSEN = [
    (FRONT_END, "aligned"),
    (COORDINATOR, "joined"),
    ("engine core 1", "spawned"),
    ("worker 1.0", "rank loaded"),
    (FRONT_END, "generating"),
    (COORDINATOR, "idle"),
    ("engine core 0", "generating"),
    ("worker 0.1", "idle"),
    ("worker 1.1", "generating"),
]
"""For every change; the others by night."""


def others(moments: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [moment for moment in moments if moment not in CHOSEN]


def shared_memory() -> set[str]:
    """Only torch's: others use it as well."""
    if not SHARED_MEMORY.is_dir():
        return set()
    return {path.name for path in SHARED_MEMORY.iterdir() if path.name.startswith("torch_")}


def kill(folder: Path, who: str, when: str) -> dict[str, Any] | None:
    """Start, kill, look what is left; what the front end was told, None if it was the victim."""
    environment = {**os.environ, "TMPDIR": str(folder)}
    command = [sys.executable, victims.__file__, str(ensure("jamba-tiny")), who, when]
    before = shared_memory()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said, complaints = process.communicate(timeout=240)
    assert process.returncode == (-9 if who == FRONT_END else 0), complaints
    assert toy_core.all_end(toy_core.named(str(folder)), GONE_S)
    assert not list(folder.iterdir())
    assert not shared_memory() - before
    assert not complaints
    return None if who == FRONT_END else json.loads(said)


def hold(folder: Path, who: str, when: str) -> None:
    told = kill(folder, who, when)
    if told is None:
        return
    assert told["seconds"] < SAID_S
    assert re.search(rf"{who} \(pid \d+\): killed by SIGKILL", told["text"]), told
    if when in {"idle", "generating"}:
        assert told["serves"], "somebody is left"
    if who == COORDINATOR and when in {"idle", "generating"}:
        assert (told["error"], told["lost"]) == ("RuntimeWarning", [])
    elif when == "generating":
        assert told["error"] == "EngineDeadError"
        # Eight requests over two engines: the other one finished its own.
        assert 0 < len(told["lost"]) < 8
    elif when == "idle":
        assert told["error"] == "EngineDeadError"
    elif when not in {"ready", "answered"}:  # in these the start may be over before the death is seen
        assert told["error"] == "EngineStartError"


@pytest.mark.slow
@pytest.mark.parametrize(("who", "when"), CHOSEN)
def test_some_of_the_table(tmp_path: Path, who: str, when: str):
    hold(tmp_path, who, when)


@pytest.mark.nightly
@pytest.mark.parametrize(("who", "when"), others(TABLE))
def test_the_rest_of_the_table(tmp_path: Path, who: str, when: str):
    hold(tmp_path, who, when)


def test_the_table_has_everybody_at_every_moment():
    assert len(set(CHOSEN)) == len(CHOSEN) == len(TABLE) - len(others(TABLE))
    assert {who for who, _ in TABLE} == {FRONT_END, COORDINATOR, *CORES, *WORKERS}
