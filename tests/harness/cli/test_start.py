"""`staticfire start` as a user runs it: a process that serves until a signal comes or its engines are gone."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from http_get import get
from staticfire.harness.cli import main
from staticfire.harness.models.make import ensure

LIMIT = 120
"""Seconds after which anything here is given up."""

pytestmark = [pytest.mark.engine]


@pytest.fixture(scope="module", autouse=True)
def checkpoint() -> None:
    ensure("jamba-tiny-grow")


@contextmanager
def start(*options: str) -> Iterator[subprocess.Popen[str]]:
    """Start engines; on the way out nothing may be left of them."""
    command = [
        sys.executable,
        "-m",
        "staticfire",
        "start",
        "jamba-tiny-grow",
        "--metrics-port",
        "0",
        "--json",
        *options,
    ]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=LIMIT)


def opened(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What it says when it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate(timeout=LIMIT)[1]
    document: dict[str, Any] = json.loads(line)
    return document


def info(text: str) -> dict[str, dict[str, str]]:
    """Engine -> the labels of its `cache_config_info`."""
    return {
        sample.labels["engine"]: sample.labels
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "staticfire:cache_config_info"
    }


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    found: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    return found


def none_left(processes: list[psutil.Process]) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=LIMIT)
    return not [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_the_schedulers_own_values_until_a_signal_comes(repo_root: Path, number: int):
    with start("--enable-multiprocessing", "--block-size", "32") as process:
        document = opened(process)
        schema = json.loads((repo_root / "docs" / "schemas" / "start.json").read_text(encoding="utf-8"))
        jsonschema.validate(document, schema)
        values = {row["field"]: row for row in document["values"]}
        assert values["cache.block_size"] == {
            "field": "cache.block_size",
            "typed": 32,
            "resolved": 32,
            "source": "typed",
            "settled": {"0": 96},  # the next multiple of 32 above the 76 tokens whose keys and values cover a state
        }
        assert get(f"{document['address']}/health") == (200, "ok\n")
        status, text = get(f"{document['address']}/metrics")
        (labels,) = info(text).values()
        (core,) = [view["fields"] for view in document["views"] if view["holder"] == "engine core 0"]
        assert status == 200
        for field, value in core.items():
            if field.startswith("runtime.") and value is not None:
                assert labels[field.removeprefix("runtime.")] == str(value)
        children = descendants(process)
        assert children
        process.send_signal(number)
        out, errors = process.communicate(timeout=LIMIT)
        assert (process.returncode, out, errors) == (0, "", "")
        assert none_left(children)


@pytest.mark.slow
def test_the_last_engine_to_die_ends_it():
    with start("--enable-multiprocessing") as process:
        opened(process)
        (core,) = [p for p in descendants(process) if "-c" in p.cmdline()]
        core.kill()
        _, errors = process.communicate(timeout=LIMIT)
        assert process.returncode == 1
        assert f"pid {core.pid}" in errors
        assert errors.splitlines()[0].startswith("engine 0 is dead: ")
        assert errors.splitlines()[0].endswith("; 0 of 1 left")
        assert errors.splitlines()[-1] == "no engine is left"


@pytest.mark.slow
def test_a_start_that_is_given_up_leaves_nothing():
    with start("--enable-multiprocessing") as process:
        deadline = time.monotonic() + LIMIT
        while not (children := descendants(process)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.terminate()
        process.communicate(timeout=LIMIT)
        assert process.returncode == 128 + signal.SIGTERM
        assert none_left(children)


def test_a_port_in_use_is_known_before_a_model_is_loaded(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["start", "no-such-model", "--metrics-port", port]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"Error: metrics on 127.0.0.1:{port}: cannot listen: Address already in use")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["start"], "Name a model: staticfire start MODEL"),
        (["start", "jamba-tiny", "--metrics-port", "70000"], "70000 is not in the range"),
        (["start", "jamba-tiny", "--metric-port", "1"], "did you mean --metrics-port?"),
        (["start", "no-such-model", "--metrics-port", "0"], "No model 'no-such-model'"),
        (["start", "bamba-9b", "--metrics-port", "0"], "bamba-9b"),
        (["start", "jamba-tiny-grow", "--metrics-port", "0", "--metrics-host", "192.0.2.1"], "cannot listen"),
        (["start", "jamba-tiny-grow", "--metrics-port", "0", "--block-size", "0"], "block_size=0"),
    ],
)
def test_bad_input_is_one_error(capsys, args, message):
    assert main(args) == 2
    assert message in capsys.readouterr().err
