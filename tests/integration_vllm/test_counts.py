"""The sites of each form in vLLM's own tests equal a count of calls by name over the syntax trees."""

import json

import pytest
import vllm_envs

from called import FORMS, calls
from staticfire.harness.cli import main

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]


@pytest.mark.parametrize("version", ["0.28.0", "0.33.0"])
def test_sites_of_each_form_equal_a_count_of_calls(version, tmp_path, monkeypatch, capsys):
    tests = vllm_envs.make_sources([version])[version] / "tests"
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path))
    main(["check", str(tests), "--engine", "reference", "--format", "json"])
    found = json.loads(capsys.readouterr().out)["coverage"]["by_form"]
    counted = calls(tests.rglob("*.py"))
    assert sum(counted.values()) > 1000
    assert {form: found[form]["sites"] for form in FORMS} == {form: counted[form] for form in FORMS}
