"""`staticfire check` as a user starts it, with the reference engine: findings, exit codes, formats, promises."""

import json
import os
import re
import shutil
import subprocess
import sys

import jsonschema
import pytest

from staticfire.harness.cli import main

CONFTEST = """
import pytest
from vllm import LLM

class VllmRunner:
    def __init__(self, model_name, max_model_len=1024, enable_chunked_prefill=False, **kwargs):
        self.llm = LLM(model=model_name, max_model_len=max_model_len,
                       enable_chunked_prefill=enable_chunked_prefill, **kwargs)

@pytest.fixture
def vllm_runner():
    return VllmRunner
"""
SUITE = """
import os, pathlib
os.system("rm -f MARKER")
pathlib.Path("MARKER").unlink(missing_ok=True)

import pytest
from vllm import LLM


@pytest.mark.parametrize("model", ["jamba-tiny", "llama-tiny"])
@pytest.mark.parametrize("seed", [0, 1])
def test_startup(vllm_runner, model, seed):
    with vllm_runner(model, dtype="bfloat16", seed=seed) as engine:
        assert engine


def test_fine():
    LLM("jamba-tiny", dtype="bfloat16")
"""
FIXED = SUITE.replace("seed=seed)", "seed=seed, enable_chunked_prefill=True)")
REFERENCE = ["--engine", "reference"]


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A folder with a suite whose wrapper turns chunked prefill off; it is the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_a.py").write_text(SUITE)
    (tmp_path / "MARKER").write_text("here")
    return folder


def checked(capsys, *args, code=0):
    assert main(["check", *map(str, args)]) == code
    out, err = capsys.readouterr()
    return out, err


def test_the_founding_fault_is_found_with_its_repair(suite, capsys):
    out, _ = checked(capsys, suite, *REFERENCE, code=1)
    assert "mamba_cache_mode=align needs chunked prefill" in out
    assert "fix: enable_chunked_prefill=True" in out
    assert "because mamba_cache_mode=align: derived" in out
    assert "tests/test_a.py:13:10 in test_startup" in out
    assert "2 of 4 parameter sets, model=jamba-tiny: 0-jamba-tiny, 1-jamba-tiny" in out
    assert out.splitlines()[-1] == "1 finding; 2 of 3 sites judged"


def test_the_repair_repairs(suite, capsys):
    (suite / "test_a.py").write_text(FIXED)
    out, _ = checked(capsys, suite, *REFERENCE)
    assert out.splitlines()[-1] == "0 findings; 2 of 3 sites judged"


def test_nothing_that_is_read_is_run(suite, capsys):
    checked(capsys, suite, *REFERENCE, code=1)
    assert (suite.parent / "MARKER").read_text() == "here"


def test_json_is_json_and_the_last_line_goes_beside_it(suite, capsys, repo_root):
    out, err = checked(capsys, suite, *REFERENCE, "--format", "json", code=1)
    schema = json.loads((repo_root / "docs" / "schemas" / "check.json").read_text(encoding="utf-8"))
    document = json.loads(out)
    jsonschema.Draft202012Validator(schema).validate(document)
    (finding,) = document["findings"]
    assert finding["repair"] == [{"set": "enable_chunked_prefill", "value": True}]
    assert finding["sites"][0]["path"] == "tests/test_a.py"
    assert err.splitlines()[-1] == document["summary"] == "1 finding; 2 of 3 sites judged"


def test_every_run_is_the_same(suite, capsys):
    first, _ = checked(capsys, suite, *REFERENCE, "--format", "json", code=1)
    again, _ = checked(capsys, suite, *REFERENCE, "--format", "json", "--no-cache", "-j", "1", code=1)
    assert first == again


@pytest.mark.parametrize("form", ["sarif", "github", "buildkite", "junit", "text"])
def test_a_report_goes_to_a_file(suite, capsys, form):
    out, _ = checked(capsys, suite, *REFERENCE, "--format", form, "--output", "report", code=1)
    assert out == "1 finding; 2 of 3 sites judged\n"
    assert "chunked" in (suite.parent / "report").read_text()


def test_a_comment_with_a_reason_accepts_a_finding(suite, capsys):
    allowed = SUITE.replace("as engine:", "as engine:  # staticfire: allow SC101 -- mended in the next release")
    (suite / "test_a.py").write_text(allowed)
    out, _ = checked(capsys, suite, *REFERENCE)
    assert "Allowed by comments: 1." in out


def test_a_baseline_is_written_kept_and_shrunk_but_never_grown(suite, capsys):
    baseline = suite.parent / "known.json"
    options = [suite, *REFERENCE, "--baseline", baseline]
    checked(capsys, *options, code=2)  # there is none yet
    checked(capsys, *options, "--update-baseline")
    out, _ = checked(capsys, *options)
    assert "Known by the baseline: 1." in out
    known = json.loads(baseline.read_text())
    (suite / "test_b.py").write_text(SUITE)
    checked(capsys, *options, code=1)
    checked(capsys, *options, "--update-baseline", code=1)
    assert json.loads(baseline.read_text()) == known
    (suite / "test_a.py").write_text(FIXED)
    (suite / "test_b.py").unlink()
    out, _ = checked(capsys, *options)
    assert "The baseline holds more than there is; --update-baseline takes it out (1):" in out
    assert "gone: refused:" in out
    checked(capsys, *options, "--update-baseline")
    assert json.loads(baseline.read_text())["findings"] == {}


def test_too_few_judged_fails(suite, capsys):
    (suite / "test_a.py").write_text(FIXED)
    checked(capsys, suite, *REFERENCE, "--min-judged", "60%")
    _, err = checked(capsys, suite, *REFERENCE, "--min-judged", "90", code=1)
    assert "66.7 % of the sites were judged; --min-judged asks for 90 %" in err


def test_nothing_judged_is_no_success(suite, capsys):
    (suite / "test_a.py").write_text(SUITE.replace("jamba-tiny", "org/elsewhere").replace("llama-tiny", "org/other"))
    out, err = checked(capsys, suite, *REFERENCE, code=2)
    assert err == "Error: nothing was judged: no configuration of the model at hand.\n"
    assert "org/elsewhere (2)" in out
    assert "--model-configs DIR" in out
    assert out.splitlines()[-1] == "0 findings; 0 of 3 sites judged"


def test_a_folder_without_sites_is_no_success(tmp_path, capsys):
    (tmp_path / "a.py").write_text("x = 1\n")
    _, err = checked(capsys, tmp_path, *REFERENCE, code=2)
    assert "no site that constructs an engine was found" in err


@pytest.mark.parametrize("where", ["org/elsewhere/config.json", "org--elsewhere.json", "elsewhere.json"])
def test_a_folder_of_configurations_supplies_models(suite, capsys, repo_root, where):
    (suite / "test_a.py").write_text(SUITE.replace("jamba-tiny", "org/elsewhere"))
    config = json.loads((repo_root / "matrices" / "models" / "jamba-tiny.json").read_text())["config"]
    place = suite.parent / "configs" / where
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(config))
    out, _ = checked(capsys, suite, *REFERENCE, "--model-configs", "configs", code=1)
    assert "model=org/elsewhere" in out


def test_redundant_values_are_reported_on_demand(suite, capsys):
    (suite / "test_a.py").write_text(FIXED + '\n\ndef test_more():\n    LLM("llama-tiny", seed=0)\n')
    checked(capsys, suite, *REFERENCE)
    out, _ = checked(capsys, suite, *REFERENCE, "--redundant", code=1)
    assert "seed=0 changes nothing here" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--engine", "reference", "--engine-python", "python"], "--engine-python is for --engine vllm"),
        (["--engine", "reference", "--device", "h10-80gb"], "h100-80gb"),
        (["--engine", "reference", "--update-baseline"], "--update-baseline needs --baseline FILE"),
        (["--engine", "reference", "--min-judged", "120%"], "no share of sites"),
        (["--engine", "sglang"], "reference"),
        (["--engine-python", "/nowhere/python"], "--engine-python /path/to/bin/python"),
        (["--engine-python", sys.executable], "--engine-python /path/to/bin/python"),
    ],
)
def test_bad_input_is_one_clear_error(suite, capsys, options, said):
    out, err = checked(capsys, suite, *options, code=2)
    assert out == ""
    assert said in err


def test_a_path_that_is_not_there(capsys):
    _, err = checked(capsys, "/nowhere", *REFERENCE, code=2)
    assert "/nowhere" in err


def test_a_broken_and_a_hostile_file_do_not_stop_the_others(suite, capsys):
    (suite / "broken.py").write_text("from vllm import LLM\nLLM(\n")
    (suite / "deep.py").write_text("from vllm import LLM\nLLM(" + "(" * 3000 + ")" * 3000 + ")\n")
    (suite / "nul.py").write_bytes(b"from vllm import LLM\nLLM('x\0')\n")
    out, _ = checked(capsys, suite, *REFERENCE, code=1)
    assert "Not read, or only in part (" in out
    assert "broken.py" in out


def test_it_runs_as_a_program_without_a_terminal_or_utf8(suite):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    command = [sys.executable, "-m", "staticfire", "check", "tests", *REFERENCE]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False, env=environment)
    assert done.returncode == 1, done.stderr
    assert b"\x1b" not in done.stdout
    assert re.fullmatch(rb"1 finding; 2 of 3 sites judged", done.stdout.splitlines()[-1])


def test_moving_the_suite_keeps_its_fingerprints(suite, capsys):
    def prints():
        out, _ = checked(capsys, "tests", *REFERENCE, "--format", "json", code=1)
        return [place["fingerprint"] for finding in json.loads(out)["findings"] for place in finding["sites"]]

    before = prints()
    text = (suite / "test_a.py").read_text()
    shutil.rmtree(suite.parent / "cache", ignore_errors=True)
    (suite / "test_a.py").write_text("# a line\n" * 7 + text)
    assert prints() == before
