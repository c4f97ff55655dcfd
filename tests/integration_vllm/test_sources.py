"""An unbuilt source tree, asked with the dependencies of an environment: an edit of a rule decides before any build."""

import re
import shutil
from pathlib import Path

import pytest
import vllm_envs

from staticfire.harness.models import devices
from staticfire.harness.probe.base import Accepted, Rejected
from staticfire.harness.probe.vllm.probe import VllmProbe
from staticfire.harness.probe.vllm.process import Limits

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]

FOUNDING = {"enable_chunked_prefill": False, "quantization": "experts_int8"}
RULE = "model_executor/models/config.py"


@pytest.fixture
def tree(interpreters, tmp_path):
    """Make a tree as a checkout has it: no compiled extension, no version file, no metadata."""

    def make(version):
        package = vllm_envs.root() / f"vllm-{version}" / "vllm"
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "_version.py")
        shutil.copytree(package, tmp_path / "checkout" / "vllm", ignore=ignored)
        return tmp_path / "checkout"

    return make


@pytest.fixture
def dependencies(interpreters):
    """The interpreter that has what vLLM needs, and no vLLM."""
    found = re.search(r"exec (\S+)", Path(interpreters["0.33.0"]).read_text())
    assert found
    return found[1]


@pytest.fixture
def ask(dependencies, question, tmp_path, monkeypatch):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    limits = Limits(start=600, question=300)

    def one(source):
        with VllmProbe(dependencies, devices.find("h100-80gb"), processes=1, limits=limits, source=source) as probe:
            return probe.identity.version, probe.ask(question("jamba-v0.1", **FOUNDING))

    return one


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_one_line_of_a_rule_changes_the_answer(tree, ask, version):
    source = tree(version)
    name, before = ask(source)
    assert name == "source"
    assert isinstance(before, Rejected)
    assert before.message.startswith("Chunked prefill is required")
    path, line = before.origin.rsplit(":", 1)
    assert path == f"vllm/{RULE}"
    rule = source / path
    lines = rule.read_text().splitlines(keepends=True)
    at = int(line) - 1
    assert "assert " in lines[at]
    lines[at] = lines[at].replace("assert ", "assert True or ", 1)
    rule.write_text("".join(lines))
    assert isinstance(ask(source)[1], Accepted)
