"""A suite that moved over to the pytest plugin, checked with a real release: certain, with the place and the repair."""

import json

import pytest

import moved_suite
from staticfire.harness.cli import main

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(900)]


def checked(arguments, interpreters, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    python = ["--engine-python", str(interpreters["0.28.0"]), "--engine-wait", "600"]
    code = main(["check", *arguments, *python, "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("form", moved_suite.FORMS)
def test_the_founding_fault_is_certain(form, interpreters, tmp_path, repo_root, capsys, monkeypatch):
    arguments = moved_suite.write(tmp_path, repo_root, moved_suite.FORMS[form])
    code, report = checked(arguments, interpreters, capsys, monkeypatch, tmp_path)
    (finding,) = report["findings"]
    assert (code, finding["certainty"]) == (1, "certain")
    assert finding["message"] == "Chunked prefill is required for mamba cache mode 'align'."
    assert finding["repair"] == [{"set": "enable_chunked_prefill", "value": True}]
    file, line = moved_suite.place_of("enable_chunked_prefill", repo_root)
    (typed,) = (link for link in finding["chain"] if "enable_chunked_prefill" in link)
    assert "= False (typed by a wrapper's default at " in typed
    assert typed.endswith(f"{file}:{line})")


@pytest.mark.parametrize("value", [True, None])
def test_once_mended_it_is_accepted(value, interpreters, tmp_path, repo_root, capsys, monkeypatch):
    text = moved_suite.mended(moved_suite.BY_FIXTURE, value)
    arguments = moved_suite.write(tmp_path, repo_root, text)
    code, report = checked(arguments, interpreters, capsys, monkeypatch, tmp_path)
    assert (code, report["findings"]) == (0, [])
    assert report["coverage"]["by_form"]["vllm_runner"]["judged"] == 1
