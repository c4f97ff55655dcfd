"""The figures that every run ends with: sites of each form, what was judged of them, and the last line."""

import json
import re

import pytest

from called import calls
from staticfire.harness.cli import main

FILES = {
    "conftest.py": """
import pytest
from vllm import LLM as Engine

class VllmRunner:
    def __init__(self, model, **kwargs):
        self.llm = Engine(model=model, **kwargs)

@pytest.fixture
def vllm_runner():
    return VllmRunner
""",
    "test_a.py": """
import pytest, vllm
from vllm import LLM, EngineArgs
from vllm.engine import arg_utils
from tests.utils import RemoteOpenAIServer as Server, compare_two_settings

@pytest.mark.parametrize("model", ["jamba-tiny", "llama-tiny"])
def test_runner(vllm_runner, model):
    with vllm_runner(model) as one, vllm_runner(model, seed=1) as other:
        pass

def test_others(unknown):
    LLM("llama-tiny"); vllm.LLM("org/elsewhere")
    arg_utils.AsyncEngineArgs("llama-tiny").create_engine_config()
    [EngineArgs(model) for model in ("llama-tiny", "jamba-tiny")]
    LLM(unknown())
    with Server("llama-tiny", ["--seed", "3"]):
        pass
    compare_two_settings("llama-tiny", [], ["--seed", "1"])

@pytest.mark.skip(reason="later")
def test_later():
    LLM("llama-tiny", seed=2)
""",
    "run.sh": "vllm serve llama-tiny\nvllm serve jamba-tiny --seed 1\n",
    "broken.py": "LLM(\n",
}
BY_HAND = {
    "vllm_runner": 2,
    "LLM": 5,
    "AsyncEngineArgs": 1,
    "EngineArgs": 1,
    "RemoteOpenAIServer": 1,
    "compare_settings": 1,
}
SITES, SKIPPED = sum(BY_HAND.values()) + 2, 1
UNKNOWN = 3  # inside the wrapper, of another owner, made by a function
JUDGED = SITES - SKIPPED - UNKNOWN


@pytest.fixture
def suite(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STATICFIRE_CACHE", str(tmp_path / "cache"))
    return tmp_path


def checked(capsys, *options):
    code = main(["check", ".", "--engine", "reference", *options])
    return code, *capsys.readouterr()


def test_sites_of_each_form_equal_a_count_of_calls(suite, capsys):
    _, out, _ = checked(capsys, "--format", "json")
    by_form = json.loads(out)["coverage"]["by_form"]
    found = {form: figures["sites"] for form, figures in by_form.items()}
    assert found == {**BY_HAND, "shell": 2}
    assert calls(suite.rglob("*.py")) == BY_HAND


def test_figures_add_up(suite, capsys):
    _, out, err = checked(capsys, "--format", "json")
    document = json.loads(out)
    coverage = document["coverage"]
    for name in ("sites", "full", "partial", "judged", "unknown_model", "skipped"):
        assert coverage[name] == sum(figures[name] for figures in coverage["by_form"].values())
    assert (coverage["sites"], coverage["judged"], coverage["skipped"]) == (SITES, JUDGED, SKIPPED)
    assert coverage["unknown_model"] == UNKNOWN
    found = len(document["findings"])
    assert err.splitlines()[-1] == f"{found} finding{'' if found == 1 else 's'}; {JUDGED} of {SITES} sites judged"


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "buildkite", "junit"])
def test_every_run_ends_with_the_same_line(suite, capsys, form):
    _, out, err = checked(capsys, "--format", form)
    last = (err or out).splitlines()[-1]
    assert re.fullmatch(rf"\d+ findings?; {JUDGED} of {SITES} sites judged", last)


@pytest.mark.parametrize(
    ("least", "code"), [("0", 0), ("69.2%", 0), ("69.24", 1), ("100%", 1), ("-1", 2), ("101", 2), ("most", 2)]
)
def test_the_least_share_that_must_be_judged(suite, capsys, least, code):
    # 9 of 13 are 69.231 %.
    assert checked(capsys, f"--min-judged={least}")[0] == code


def test_without_an_engine_the_command_to_name_one_is_said(suite, capsys):
    code = main(["check", ".", "--engine-python", "/nowhere/python"])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert "--engine-python /path/to/bin/python" in err
