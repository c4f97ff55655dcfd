"""Our rules beside real releases of vLLM: a sample for every change; `make differential` draws 1,500 configurations."""

import json

import pytest

from staticfire.engine.config.rules.registry import RULES
from staticfire.harness.cli import main

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(1800)]

SAMPLE = 200


def compared(capsys, python, examples=SAMPLE):
    asked = ["rules", "--against", "vllm", "--engine-python", str(python), "--examples", str(examples)]
    status = main([*asked, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_every_disagreement_with_a_release_is_explained(interpreters, capsys, version):
    status, found = compared(capsys, interpreters[version])
    assert found["groups"] == []
    assert status == 0
    assert (found["release"], found["examples"]) == (f"vllm=={version}", SAMPLE)
    # A comparison in which hardly anything was known would agree, too.
    known = found["configuration"].get("accepted", 0) + found["configuration"].get("refused", 0)
    assert known > SAMPLE / 2
    assert found["configuration"]["accepted"] > SAMPLE / 5
    assert found["values_compared"] > 5 * SAMPLE


def test_a_rule_of_ours_that_is_broken_is_seen(interpreters, capsys, monkeypatch):
    rest = tuple(rule for rule in RULES if rule.code != "SF101")
    monkeypatch.setattr("staticfire.engine.config.resolver.RULES", rest)
    status, found = compared(capsys, interpreters["0.33.0"])
    assert status == 1
    (group,) = found["groups"]
    assert group["kind"] == "theirs refuses"
    assert group["because"].startswith("vllm/model_executor/models/config.py:")
    assert group["typed"] == {"enable_chunked_prefill": False}
