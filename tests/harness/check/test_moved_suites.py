"""A suite that moved over to the pytest plugin is judged as it was under vLLM's own conftest."""

import json

import pytest

import moved_suite
from staticfire.harness.cli import main


def checked(arguments, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    code = main(["check", *arguments, "--engine", "reference", "--format", "json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("form", moved_suite.FORMS)
def test_the_founding_fault_is_certain_with_its_repair(form, tmp_path, repo_root, capsys, monkeypatch):
    arguments = moved_suite.write(tmp_path, repo_root, moved_suite.FORMS[form])
    code, report = checked(arguments, capsys, monkeypatch, tmp_path)
    (finding,) = report["findings"]
    assert (code, finding["kind"], finding["certainty"]) == (1, "refused", "certain")
    assert finding["repair"] == [{"set": "enable_chunked_prefill", "value": True}]
    file, line = moved_suite.place_of("enable_chunked_prefill", repo_root)
    (typed,) = (link for link in finding["chain"] if link.startswith("enable_chunked_prefill=False: "))
    assert typed.startswith("enable_chunked_prefill=False: typed by a wrapper's default at ")
    assert typed.endswith(f"{file}:{line}")
    assert report["coverage"]["by_form"]["vllm_runner"]["full"] == 1


@pytest.mark.parametrize("value", [True, None])
@pytest.mark.parametrize("form", moved_suite.FORMS)
def test_once_mended_it_is_accepted(form, value, tmp_path, repo_root, capsys, monkeypatch):
    text = moved_suite.mended(moved_suite.FORMS[form], value)
    code, report = checked(moved_suite.write(tmp_path, repo_root, text), capsys, monkeypatch, tmp_path)
    assert (code, report["findings"]) == (0, [])
    assert report["coverage"]["by_form"]["vllm_runner"]["judged"] == 1
