"""A suite outside the repository, of three files and a conftest: serial, spread, sharded, and with a worker killed."""

import pytest

from run_pytest import Suite

pytestmark = pytest.mark.slow

MATRIX = """
[matrix]
name = "ours"
description = "The suite's own."

[axes]
model = ["jamba-tiny", "llama-tiny"]
enable_prefix_caching = ["unset", false]
enable_chunked_prefill = ["unset", false]
max_num_batched_tokens = [1024]

[fixed]
max_model_len = 128

[[constraint]]
when = { model = "jamba-tiny", enable_prefix_caching = "unset", enable_chunked_prefill = false }
reason = "states are kept at block boundaries, where no prompt may be cut"
kind = "unsupported"
rule = "SF101"

[cover]
strength = 3
"""
CONFTEST = """
    import pytest

    @pytest.fixture
    def accepted(cell):
        from staticfire.engine.config import accept, model_info
        from staticfire.harness.models import catalog

        return accept(cell.config, model_info(catalog.load(cell.model).config, cell.model))
"""
ENGINE = """
    import pytest

    @pytest.mark.matrix("ours.toml", model="jamba-tiny")
    def test_generates(cell, cell_runner, example_prompts):
        with cell_runner() as engine:
            tokens, text = engine.generate_greedy(example_prompts[:1], 3)[0]
            assert text.startswith(example_prompts[0])
"""
CONFIG = """
    import pytest

    pytestmark = pytest.mark.matrix("ours.toml")

    def test_resolves(cell, accepted):
        assert accepted.scheduler.max_num_batched_tokens == 1024

    def test_caching(cell, accepted):
        assert accepted.cache.enable_prefix_caching is (cell.axes["enable_prefix_caching"] == "unset")
"""
PLAIN = """
    import os, signal, time

    def test_plain():
        assert True

    def test_killed():
        if os.environ.get("KILL"):
            os.kill(os.getpid(), signal.SIGKILL)
        assert True
"""


@pytest.fixture
def suite(tmp_path):
    made = Suite(tmp_path)
    made.write("ours.toml", MATRIX)
    made.write("conftest.py", CONFTEST)
    made.write("test_config.py", CONFIG)
    made.write("test_plain.py", PLAIN)
    return made


def test_serial_spread_and_sharded_runs_have_one_result(suite):
    suite.write("test_engine.py", ENGINE)
    serial = suite.run("--sf-guards=all")
    assert serial.code == 0, serial.text
    assert len(serial.outcomes) == 4 + 16 + 2
    refused = [name for name, properties in serial.properties.items() if "refused_by" in properties]
    assert len(refused) == 3
    spread = suite.run("-n", "2", "--dist=loadgroup", "--sf-guards=all")
    assert (spread.code, spread.outcomes) == (0, serial.outcomes)
    (suite.folder / "junit.xml").rename(suite.folder / "durations.xml")
    parts = [suite.run("--sf-shard", f"{k}/3", "--sf-durations=durations.xml") for k in (1, 2, 3)]
    assert [part.code for part in parts] == [0, 0, 0]
    assert sum(len(part.outcomes) for part in parts) == len(serial.outcomes)
    assert {name: found for part in parts for name, found in part.outcomes.items()} == serial.outcomes


def test_a_killed_worker_loses_its_own_test_and_no_other(suite):
    serial = suite.run()
    killed = suite.run("-n", "2", "--dist=loadgroup", KILL="1")
    assert killed.code == 1
    assert "was killed by SIGKILL in the call of test_plain.py::test_killed" in killed.text
    without = {name: found for name, found in serial.outcomes.items() if "killed" not in name}
    assert {name: found for name, found in killed.outcomes.items() if "killed" not in name} == without
