"""Where a value was written, and by whom, whatever was read before: a call that was seen already is told anew."""

import pytest

from staticfire.harness.scan.scan import scan

CONFTEST = """
import pytest
from vllm import LLM

def given(**keywords):
    return keywords

def inner():
    return {"dtype": "auto"}

def defaults():
    return {"seed": 3, **inner()}

class Runner:
    def __init__(self, model, **keywords):
        self.llm = LLM(model, **{**defaults(), **keywords})

@pytest.fixture
def vllm_runner():
    return Runner
"""
SUITE = """
from conftest import given

def test_a(vllm_runner):
    vllm_runner("org/m", **given(block_size=16))
    vllm_runner("org/m", **given(block_size=16))

def test_b(vllm_runner):
    vllm_runner("org/m", **given(block_size=16))
    vllm_runner("org/m", **given(block_size=16))
"""


@pytest.fixture
def typed(tmp_path):
    """Line of a site -> keyword -> (layer, file, line)."""
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_a.py").write_text(SUITE)
    return {
        site.where.line: {
            name: (one.layer, one.where.path.rpartition("/")[2], one.where.line)
            for name, one in site.configurations[0].keywords.items()
        }
        for site in scan([tmp_path]).sites
        if site.form == "vllm_runner"
    }


def test_what_a_helper_hands_on_was_written_where_it_was_called(typed):
    assert set(typed) == {5, 6, 9, 10}
    assert {line: keywords["block_size"] for line, keywords in typed.items()} == {
        line: ("call", "test_a.py", line) for line in typed
    }


@pytest.mark.parametrize(("keyword", "line"), [("seed", 12), ("dtype", 9)])
def test_a_default_from_a_wrappers_helper_is_the_wrappers_at_every_site(typed, keyword, line):
    assert [keywords[keyword] for keywords in typed.values()] == [("wrapper", "conftest.py", line)] * 4
